"""When held work starts: within its bounds, gangs together, no more held than allowed."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_core.signals.timestamps import format_timestamp
from greensched_operator.holding.judging import MayWait, judge
from greensched_operator.objects.release_patch import ReleaseReason
from greensched_operator.planning.cluster_state import Zone
from greensched_operator.planning.outlooks import slot_begin
from greensched_operator.planning.plan_words import why_held, why_now
from greensched_operator.planning.situation import Planned, Situation, jitter_of
from greensched_operator.planning.start_planning import plan_starts
from greensched_policies.costs.merit_order import ALIKE, MERIT_STEPS
from greensched_policies.encoding.weights import NO_CARBON_LIMIT
from greensched_policies.planning.outlook import SLOT_S
from greensched_policies.planning.planning import Running
from tests.operator.annotated_work import ENFORCING, HOUR_S, NOW_S, marks, rules, work_of
from tests.operator.situations import situation_of

DAY = 96  # slots
CLEAN = range(12, 16)  # slots: the fourth hour


def situation(
    carbon: list[float] | None = None,
    *,
    cores: float = 64.0,
    earlier_plans: tuple[Planned, ...] = (),
    running: tuple[Running, ...] = (),
) -> Situation:
    """Return a cluster of one zone, whose grid is clean for an hour."""
    grams = carbon or [100.0 if slot in CLEAN else 500.0 for slot in range(DAY)]
    found = situation_of(NOW_S, grams, np.nan, Zone("A", cores, 5.0), jitter_s=120.0)
    return replace(found, running=running, earlier_plans=earlier_plans)


def waiting(name: str = "train", share: float = 1.0, gang: str = "", **said: str) -> MayWait:
    asked = {"deadline": "8h", "runtime": "30m"} | said
    work = work_of(name, marks(NOW_S, NOW_S + 4 * HOUR_S, **asked), gang=gang)
    found = judge(work, rules(replace(ENFORCING, max_held_share=share)), NOW_S)
    assert isinstance(found, MayWait)
    return found


def test_it_waits_for_the_clean_hour_with_its_jitter() -> None:
    [planned], released = plan_starts([waiting()], situation())
    clean_s = slot_begin(NOW_S) + CLEAN[0] * SLOT_S
    assert released == []
    assert clean_s <= planned.start_s <= clean_s + 3 * SLOT_S
    assert not planned.is_now


@pytest.mark.parametrize(
    "carbon",
    [
        pytest.param([500.0] * DAY, id="always-dirty"),
        pytest.param([0.0] * DAY, id="always-clean"),
        pytest.param([float("nan")] * DAY, id="nothing-is-known"),
        pytest.param([100.0 + slot for slot in range(DAY)], id="ever-dirtier"),
    ],
)
def test_where_waiting_saves_nothing_it_starts_now(carbon: list[float]) -> None:
    [planned], _ = plan_starts([waiting()], situation(carbon))
    assert planned.is_now


def test_a_plan_that_is_written_stands_to_the_second() -> None:
    [first], _ = plan_starts([waiting()], situation())
    written = waiting(planned_start=format_timestamp(round(first.start_s)))
    [again], _ = plan_starts([written], situation())
    assert again.start_s == round(first.start_s)


def test_a_gang_shares_its_start_and_the_strictest_end() -> None:
    gang = [waiting(f"of-{place}", gang="ring", deadline=deadline)
            for place, deadline in enumerate(("8h", "3h", "9h"))]  # fmt: skip
    planned, _ = plan_starts(gang, situation())
    assert len({one.start_s for one in planned}) == 1
    assert planned[0].start_s <= gang[1].terms.latest_start_s
    assert planned[0].is_now, "the clean hour is after that, so there is nothing to wait for"


def test_a_gang_has_room_only_where_the_memory_of_all_has() -> None:
    zone = replace(situation().zones[0], memory_bytes=8e9)
    now = replace(situation([100.0] * 4 + [500.0] * 92), zones=(zone,))
    gang = [with_memory(waiting(f"of-{place}", gang="ring"), 3e9) for place in range(2)]
    asked = [with_memory(waiting("before"), 2e9), *gang]
    planned, _ = plan_starts(asked, now)
    assert [one.chosen.has_room for one in planned] == [True, True, True]
    starts_s = {one.waiting.work.name: one.chosen.expected_s for one in planned}
    assert starts_s["of-0"] == starts_s["of-1"] > starts_s["before"]


def with_memory(one: MayWait, memory_bytes: float) -> MayWait:
    return replace(one, work=replace(one.work, memory_bytes=memory_bytes))


def test_work_of_equal_requests_has_the_watts_of_its_own_profile() -> None:
    now, plain = situation(), waiting()
    profiled = replace(plain, terms=replace(plain.terms, pod_power_w=77.0))
    assert (now.watts(plain), now.watts(profiled), now.watts(plain)) == ([5.0], [77.0], [5.0])


@pytest.mark.parametrize(
    ("share", "held"),
    [
        pytest.param(1.0, 6, id="all"),
        pytest.param(0.5, 4, id="half-of-eight-cores"),
        pytest.param(0.0, 0, id="none"),
    ],
)
def test_no_more_is_held_than_the_policys_share_of_the_cores(share: float, held: int) -> None:
    asked = [waiting(f"job-{place}", share) for place in range(6)]
    planned, released = plan_starts(asked, situation(cores=8.0))
    assert len(planned) == held
    assert {each.reason for each in released} <= {ReleaseReason.HELD_SHARE}
    assert len(released) == 6 - held


def test_what_has_a_plan_is_held_before_what_is_new() -> None:
    old = waiting("old", 0.25, planned_start=format_timestamp(NOW_S + 3 * HOUR_S))
    new = waiting("new", 0.25)
    planned, [released] = plan_starts([new, old], situation(cores=4.0))
    assert [one.waiting.work.name for one in planned] == ["old"]
    assert released.work.name == "new"


def test_what_waits_already_takes_its_part_of_the_share() -> None:
    before, _ = plan_starts([waiting(f"old-{place}", 0.5) for place in range(3)], situation())
    new = [waiting(f"new-{place}", 0.5) for place in range(2)]
    planned, released = plan_starts(new, situation(cores=8.0, earlier_plans=tuple(before)))
    assert (len(planned), len(released)) == (1, 1)


def test_the_clean_hour_is_not_promised_to_more_than_it_has_room_for() -> None:
    asked = [waiting(f"job-{place}", deadline="20h") for place in range(40)]
    planned, _ = plan_starts(asked, situation(cores=8.0))
    begin_s = slot_begin(NOW_S)
    slots = [int((one.start_s - begin_s) // SLOT_S) for one in planned if one.chosen.has_room]
    assert max(slots.count(slot) for slot in CLEAN) <= 8


def test_jitter_is_the_same_each_time_and_below_half_a_slot() -> None:
    jitters = [jitter_of(waiting(f"job-{place}"), 1e6) for place in range(50)]
    assert jitters == [jitter_of(waiting(f"job-{place}"), 1e6) for place in range(50)]
    assert 0.0 <= min(jitters) < max(jitters) < SLOT_S / 2
    assert len(set(jitters)) == 50
    assert len({jitter_of(waiting(name, gang="ring"), 120.0) for name in "abc"}) == 1


CARBON = st.lists(st.floats(0.0, 2000.0), min_size=DAY, max_size=DAY)
HOURS = st.lists(st.tuples(st.integers(2, 23), st.sampled_from(["", "ring", "duo"])), min_size=1,
                 max_size=8)  # fmt: skip


@given(CARBON, HOURS, st.sampled_from([0.0, 0.3, 1.0]))
def test_whatever_is_forecast_nobody_starts_beyond_the_latest_start(
    carbon: list[float], told: list[tuple[int, str]], share: float
) -> None:
    asked = [waiting(f"job-{place}", share, gang, deadline=f"{hours}h")
             for place, (hours, gang) in enumerate(told)]  # fmt: skip
    planned, released = plan_starts(asked, situation(carbon, cores=8.0))
    names = [one.waiting.work.name for one in planned] + [each.work.name for each in released]
    assert sorted(names) == sorted(one.work.name for one in asked)
    for one in planned:
        assert one.start_s <= one.waiting.terms.latest_start_s
        assert one.is_now is (one.start_s <= NOW_S)
    for gang in ("ring", "duo"):
        starts = {one.start_s for one in planned if one.waiting.work.gang == gang}
        assert len(starts) <= 1


@pytest.mark.parametrize(
    ("running_cores", "told"),
    [pytest.param(8.0, "no room", id="full"), pytest.param(0.0, "", id="empty")],
)
def test_a_start_for_want_of_room_says_so(running_cores: float, told: str) -> None:
    runs = Running(0, NOW_S + 5 * HOUR_S, running_cores)  # past the clean hour
    careless = replace(ENFORCING, waits_for_room=False)
    asked = replace(waiting("train", deadline="20h"), policy=careless)
    [planned], _ = plan_starts([asked], situation(cores=8.0, running=(runs,)))
    assert planned.chosen.lacks_room == bool(told)
    assert told in why_now(planned)


def test_on_a_flat_grid_nothing_is_said_of_room() -> None:
    runs = Running(0, NOW_S + 5 * HOUR_S, 8.0)
    [planned], _ = plan_starts([waiting("train", deadline="20h")],
                               situation([300.0] * DAY, cores=8.0, running=(runs,)))  # fmt: skip
    assert "no later start saves enough" in why_now(planned)


CHEAP = [100.0 if slot not in CLEAN else 20.0 for slot in range(DAY)]
DIRTIER = [200.0 if slot not in CLEAN else 260.0 for slot in range(DAY)]


def two_signals(carbon: list[float], price: list[float]) -> Situation:
    """Return a cluster of one zone by its carbon and its price."""
    return situation_of(NOW_S, carbon, price, Zone("A", 64.0, 5.0))


def with_limit(per_g: float) -> MayWait:
    one = waiting()
    return replace(one, policy=replace(one.policy, carbon_price_per_g=per_g))


def test_out_of_the_box_nothing_waits_for_a_cheaper_and_dirtier_hour() -> None:
    here = two_signals(DIRTIER, CHEAP)
    [strict], _ = plan_starts([waiting()], here)
    assert strict.is_now
    assert why_now(strict) == "better starts emit more than its policy's carbonLimit allows"
    [free], _ = plan_starts([with_limit(NO_CARBON_LIMIT)], here)
    assert not free.is_now
    assert "carbon +30 %, cost -80 % against running now, 260 instead of 200" in why_held(free)


def test_both_sides_are_reported_where_both_fall() -> None:
    [planned], _ = plan_starts([waiting()], two_signals(CHEAP, CHEAP))
    assert "carbon -80 %, cost -80 % against running now, 20 instead of 100" in why_held(planned)


def test_a_wait_for_nodes_that_need_less_energy_says_so() -> None:
    half = MERIT_STEPS // 2
    zone = Zone("A", 64.0, 5.0, merit=((0.5,) * half + (1.5,) * half, ALIKE))
    runs = (Running(0, NOW_S + HOUR_S, 40.0),)
    here = replace(situation_of(NOW_S, [100.0] * DAY, [50.0] * DAY, zone), running=runs)
    [planned], _ = plan_starts([waiting()], here)
    words = "carbon -67 %, cost -67 % against running now, 100 instead of 100 g/kWh"
    assert f"{words}, 50 instead of 50 per MWh, energy -67 %" in why_held(planned)


def test_without_room_now_the_first_start_that_has_it_is_the_one_compared_with() -> None:
    runs = Running(0, NOW_S + HOUR_S, 8.0)
    [planned], _ = plan_starts(
        [waiting("train", deadline="20h")], situation(cores=8.0, running=(runs,))
    )
    soonest = format_timestamp(slot_begin(NOW_S + HOUR_S) + SLOT_S)
    assert f"against {soonest}, the first start with room, " in why_held(planned)


def test_what_waited_is_compared_with_its_arrival_and_not_with_a_dirty_hour_in_between() -> None:
    """Now is cheap and dirty. On arrival it was 150 g/kWh, and later is clean enough again."""
    carbon = [200.0] * 8 + [140.0] * (DAY - 8)
    price = [20.0] * 8 + [100.0] * (DAY - 8)
    here = two_signals(carbon, price)
    [fresh], _ = plan_starts([waiting()], here)
    assert fresh.is_now
    kwh = 0.5 * 5.0 / 1000.0  # half an hour of one core
    written = json.dumps({"carbonGramsAtArrival": 150.0 * kwh})
    [waited], _ = plan_starts([waiting(decision=written)], here)
    assert waited.start_s >= slot_begin(NOW_S) + 8 * SLOT_S
    assert waited.at_arrival_g == 150.0 * kwh
    [unreadable], _ = plan_starts([waiting(decision="{")], here)
    assert unreadable.is_now and unreadable.at_arrival_g == pytest.approx(200.0 * kwh)


def test_a_gangs_members_each_know_their_own_part_of_what_it_had_emitted_on_arrival() -> None:
    gang = [waiting(f"of-{place}", gang="ring") for place in range(4)]
    planned, _ = plan_starts(gang, two_signals(CHEAP, CHEAP))
    kwh = 0.5 * 5.0 / 1000.0  # of one of them
    assert [one.at_arrival_g for one in planned] == pytest.approx([100.0 * kwh] * 4)


def test_work_that_requests_no_cores_waits_for_cleaner_hours_too() -> None:
    one = waiting()
    for_free = replace(one, work=replace(one.work, cpu_cores=0.0))
    [clean], _ = plan_starts([for_free], situation())
    [dirty], _ = plan_starts([for_free], two_signals(DIRTIER, CHEAP))
    assert not clean.is_now and dirty.is_now


def test_work_is_planned_in_a_zone_with_nodes_that_it_may_run_on() -> None:
    """Both zones are alike, so that the first would be taken."""
    clean_later = [500.0] * 12 + [100.0] * (DAY - 12)
    here = situation_of(NOW_S, clean_later, 50.0, Zone("A", 64.0, 5.0), Zone("B", 64.0, 5.0))
    [anywhere], _ = plan_starts([waiting()], here)
    [there], _ = plan_starts([waiting()], replace(here, zones_for=lambda _: frozenset({"B"})))
    assert (anywhere.zone, there.zone) == ("A", "B")


def test_a_gang_is_planned_where_each_of_its_members_may_run() -> None:
    clean_later = [500.0] * 12 + [100.0] * (DAY - 12)
    zones = Zone("A", 64.0, 5.0), Zone("B", 64.0, 5.0), Zone("C", 64.0, 5.0)
    allowed = {"of-0": frozenset({"A", "C"}), "of-1": frozenset({"B", "C"})}
    here = situation_of(NOW_S, clean_later, 50.0, *zones)
    here = replace(here, zones_for=lambda one: allowed[one.work.name])
    planned, _ = plan_starts([waiting(name, gang="ring") for name in allowed], here)
    assert [one.zone for one in planned] == ["C", "C"]
