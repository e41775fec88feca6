"""When held workloads start: what holds whatever the grid, and the thresholds at their edges."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from greensched_policies.costs.cost import Floats
from greensched_policies.encoding.slots import FULL
from greensched_policies.encoding.weights import UNLIMITED, CarbonLimit, Weights
from greensched_policies.planning.core_plan import CorePlan
from greensched_policies.planning.outlook import Outlook, outlook_of
from greensched_policies.planning.planning import (
    NO_ZONE,
    Chosen,
    Mean,
    Running,
    StartReason,
    StartRequest,
    Thresholds,
    plan_all,
)
from greensched_policies.rules.catalogue import WHEN_RULES
from tests.policies.planning.one_start import choose_start

SLOT_S = 900.0
MIDNIGHT_S = 1_700_006_400.0  # of some day, in seconds since the epoch
CARBON = Weights(0.0, 1.0, 0.0)
WATTS = 8.0


def grid(*zones: Sequence[float], known: int | None = None) -> Outlook:
    """Return an outlook on carbon alone, slot by slot; prices are all 50."""
    carbon = np.array(zones, dtype=float)
    covered = None if known is None else np.full(len(zones), known)
    return outlook_of(MIDNIGHT_S, SLOT_S, carbon, np.full(carbon.shape, 50.0), covered)


def empty(*capacity: float, slots: int = 200) -> CorePlan:
    return CorePlan(np.array(capacity), MIDNIGHT_S, SLOT_S, slots)


def work(
    *,
    slack: int = 8,
    runs_s: Floats | float = SLOT_S,
    cores: float = 1.0,
    rule: str = "planned-window",
    weights: Weights = CARBON,
    limit: CarbonLimit = UNLIMITED,
    kept: int | None = None,
) -> StartRequest:
    """Return a workload whose slack, and start so far, are told in slots."""
    runtime_s = np.atleast_1d(np.asarray(runs_s, dtype=float))
    return StartRequest(
        runtime_s=runtime_s,
        latest_s=MIDNIGHT_S + slack * SLOT_S,
        cpu_cores=cores,
        power_w=np.full(runtime_s.size, WATTS),
        weights=weights,
        when=WHEN_RULES[rule],
        limit=limit,
        kept_start_s=None if kept is None else MIDNIGHT_S + kept * SLOT_S,
    )


def slot_of(chosen: Chosen) -> float:
    return (chosen.start_s - MIDNIGHT_S) / SLOT_S


@st.composite
def many(draw: st.DrawFn) -> tuple[Outlook, CorePlan, list[StartRequest]]:
    dice = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    zones, count = draw(st.integers(1, 3)), draw(st.integers(0, 30))
    carbon = dice.uniform(20.0, 800.0, (zones, 60))
    price = dice.uniform(-50.0, 200.0, (zones, 60))
    known = dice.integers(0, 61, zones)
    plan = CorePlan(dice.uniform(2.0, 60.0, zones), MIDNIGHT_S, SLOT_S, 100)
    rules = draw(st.lists(st.sampled_from(sorted(WHEN_RULES)), min_size=1))
    asked = [
        StartRequest(
            runtime_s=dice.uniform(1.0, 20_000.0, zones),
            latest_s=MIDNIGHT_S + float(dice.uniform(-2_000.0, 40_000.0)),
            cpu_cores=float(dice.uniform(0.1, 4.0)),
            power_w=dice.uniform(1.0, 50.0, zones),
            weights=Weights(*dice.uniform(0.0, 1.0, 3).tolist()),
            when=WHEN_RULES[rules[place % len(rules)]],
            kept_start_s=float(MIDNIGHT_S + dice.integers(0, 40) * SLOT_S)
            if dice.random() < 0.5
            else None,
        )
        for place in range(count)
    ]
    return outlook_of(MIDNIGHT_S, SLOT_S, carbon, price, known), plan, asked


@given(many())
def test_nobody_starts_in_the_past_nor_later_than_allowed(
    world: tuple[Outlook, CorePlan, list[StartRequest]],
) -> None:
    outlook, plan, asked = world
    for each, chosen in zip(asked, plan_all(outlook, plan, asked, MIDNIGHT_S), strict=True):
        assert MIDNIGHT_S <= chosen.start_s <= max(each.latest_s, MIDNIGHT_S)


@given(many())
def test_nobody_waits_for_a_slot_that_is_not_forecast(
    world: tuple[Outlook, CorePlan, list[StartRequest]],
) -> None:
    outlook, plan, asked = world
    for chosen in plan_all(outlook, plan, asked, MIDNIGHT_S):
        if chosen.start_s > MIDNIGHT_S:
            assert slot_of(chosen) < outlook.known[chosen.run.zone]


def free_cores(plan: CorePlan, chosen: Chosen, cpu_cores: float) -> None:
    """Remove from the plan the cores that it keeps for a workload."""
    if chosen.kept_zone != NO_ZONE:
        plan.keep(chosen.kept_zone, chosen.expected_s, chosen.kept_until_s, -cpu_cores)


@given(many())
def test_the_same_is_decided_again_by_a_plan_whose_cores_are_free_again(
    world: tuple[Outlook, CorePlan, list[StartRequest]],
) -> None:
    outlook, plan, asked = world
    first = plan_all(outlook, plan, asked, MIDNIGHT_S)
    for chosen, each in zip(first, asked, strict=True):
        free_cores(plan, chosen, each.cpu_cores)
    np.testing.assert_allclose(plan.cores, 0.0, atol=1e-9)
    fresh = CorePlan(plan.capacity, MIDNIGHT_S, SLOT_S, 100)
    assert plan_all(outlook, fresh, asked, MIDNIGHT_S) == first


@given(many())
def test_who_waits_saves_at_least_the_share(
    world: tuple[Outlook, CorePlan, list[StartRequest]],
) -> None:
    outlook, plan, asked = world
    for chosen in plan_all(outlook, plan, asked, MIDNIGHT_S):
        is_for_room = chosen.why is StartReason.NO_ROOM
        assert chosen.start_s == MIDNIGHT_S or is_for_room or chosen.saving >= 0.02


def taken_now(plan: CorePlan, zone: int, each: StartRequest) -> float:
    """Return the highest share of a zone's cores during a run from now, with its own."""
    slots = max(int(np.ceil(each.runtime_s[zone] / SLOT_S)), 1)
    return float((plan.cores[zone, :slots].max() + each.cpu_cores) / plan.capacity[zone])


@given(many())
def test_room_is_kept_while_there_is_any(
    world: tuple[Outlook, CorePlan, list[StartRequest]],
) -> None:
    """By the rule that looks at it, and without thresholds, which may let work queue instead."""
    outlook, plan, asked = world
    for each in asked:
        own = each._replace(when=WHEN_RULES["planned-window"], thresholds=None)
        now = np.array([taken_now(plan, zone, each) for zone in range(outlook.zones)])
        chosen = choose_start(outlook, plan, own, MIDNIGHT_S)
        assert chosen.has_room or now.min() > FULL  # now is always a choice
        if chosen.has_room:
            plan.keep(chosen.kept_zone, chosen.expected_s, chosen.kept_until_s, own.cpu_cores)
            assert (plan.cores <= FULL * plan.capacity[:, None] + 1e-9).all()


@pytest.mark.parametrize("rule", WHEN_RULES)
@given(
    carbon=st.floats(0.0, 900.0),
    runs_s=st.floats(1.0, 90_000.0),
    cores=st.floats(0.1, 9.0),
    taken=st.floats(0.0, 20.0),
)
def test_a_grid_that_is_always_alike_holds_nothing_even_where_there_is_no_room(
    rule: str, carbon: float, runs_s: float, cores: float, taken: float
) -> None:
    plan = empty(10.0)
    plan.keep(0, MIDNIGHT_S, MIDNIGHT_S + 3 * SLOT_S, taken)
    chosen = choose_start(
        grid([carbon] * 20), plan, work(rule=rule, runs_s=runs_s, cores=cores), MIDNIGHT_S
    )
    assert chosen.start_s == MIDNIGHT_S


@pytest.mark.parametrize(
    ("later", "starts", "why"),
    [
        pytest.param(97.9, 3, StartReason.PLANNED, id="just-enough"),
        pytest.param(98.1, 0, StartReason.SAVES_TOO_LITTLE, id="too-little"),
        pytest.param(100.0, 0, StartReason.NOW_IS_BEST, id="nothing"),
    ],
)
def test_work_waits_only_for_what_saves_two_per_cent(
    later: float, starts: int, why: StartReason
) -> None:
    outlook = grid([100.0, 100.0, 100.0, later, 100.0])
    chosen = choose_start(outlook, empty(10.0), work(), MIDNIGHT_S)
    assert (slot_of(chosen), chosen.why) == (starts, why)


@pytest.mark.parametrize(
    ("carbon", "starts", "why"),
    [
        pytest.param([200.0, 100.0, 95.1], 1, StartReason.KEPT, id="hardly-better-elsewhere"),
        pytest.param([200.0, 100.0, 94.9], 2, StartReason.PLANNED, id="better-elsewhere"),
        pytest.param(
            [101.0, 100.0, 99.5], 0, StartReason.SAVES_TOO_LITTLE, id="no-longer-worth-it"
        ),
    ],
)
def test_a_plan_stays_unless_another_is_better_by_five_per_cent(
    carbon: list[float], starts: int, why: StartReason
) -> None:
    chosen = choose_start(grid(carbon), empty(10.0), work(slack=2, kept=1), MIDNIGHT_S)
    assert (slot_of(chosen), chosen.why) == (starts, why)


@pytest.mark.parametrize("better", [0.0, 1e-12, -1e-12])
def test_of_starts_that_cost_the_same_the_earliest_is_chosen(better: float) -> None:
    outlook = grid([200.0, 100.0, 100.0 + better, 100.0 - better])
    assert slot_of(choose_start(outlook, empty(10.0), work(), MIDNIGHT_S)) == 1


def test_a_plan_beyond_the_latest_start_or_beyond_the_forecast_does_not_stay() -> None:
    outlook = grid([200.0, 100.0, 100.0, 100.0], known=3)
    late = choose_start(outlook, empty(10.0), work(slack=1, kept=2), MIDNIGHT_S)
    unknown = choose_start(outlook, empty(10.0), work(slack=9, kept=3), MIDNIGHT_S)
    assert (slot_of(late), slot_of(unknown)) == (1, 1)


def test_a_plan_without_room_does_not_stay() -> None:
    plan = empty(10.0)
    plan.keep(0, MIDNIGHT_S + SLOT_S, MIDNIGHT_S + 2 * SLOT_S, 9.5)
    asked = work(slack=2, kept=1, rule="planned-window")
    chosen = choose_start(grid([200.0, 100.0, 100.5]), plan, asked, MIDNIGHT_S)
    assert slot_of(chosen) == 2 and chosen.has_room


def test_whoever_changes_the_rule_changes_the_plan() -> None:
    asked = work(kept=1, rule="run-now")
    assert slot_of(choose_start(grid([200.0, 100.0]), empty(10.0), asked, MIDNIGHT_S)) == 0


def test_a_plan_whose_time_has_come_is_put_off_only_for_a_better_one() -> None:
    asked = work(slack=1, kept=0)
    stays = choose_start(grid([100.0, 99.5]), empty(10.0), asked, MIDNIGHT_S)
    moves = choose_start(grid([100.0, 50.0]), empty(10.0), asked, MIDNIGHT_S)
    assert (slot_of(stays), slot_of(moves)) == (0, 1)


def test_with_three_hours_of_forecast_work_of_a_day_starts_in_the_best_of_them() -> None:
    carbon = [300.0] * 5 + [200.0] + [300.0] * 6 + [10.0] * 90
    asked = work(slack=90)
    assert slot_of(choose_start(grid(carbon, known=12), empty(10.0), asked, MIDNIGHT_S)) == 5
    assert slot_of(choose_start(grid(carbon), empty(10.0), asked, MIDNIGHT_S)) == 12


def test_while_the_forecast_falls_work_waits_on_and_is_decided_again_when_it_rolls_on() -> None:
    carbon = [300.0 - 10.0 * slot for slot in range(20)] + [500.0] * 40
    now, asked = 0, work(slack=50)
    for _ in range(30):
        outlook = grid(carbon, known=now + 4)
        chosen = choose_start(outlook, empty(10.0), asked, MIDNIGHT_S + now * SLOT_S)
        if slot_of(chosen) == now:
            break
        now += 1
    assert now == 19


def test_the_tail_of_a_run_counts_beyond_the_forecast() -> None:
    outlook = grid([100.0, 100.0, 100.0, 900.0, 900.0, 900.0], known=3)
    chosen = choose_start(outlook, empty(10.0), work(runs_s=3 * SLOT_S), MIDNIGHT_S)
    assert slot_of(chosen) == 0


def test_a_zone_is_considered_while_its_own_forecast_lasts() -> None:
    carbon = np.array([[100.0] * 6, [90.0, 90.0, 90.0, 90.0, 10.0, 10.0]])
    price = np.ones(carbon.shape)
    two = work(runs_s=np.full(2, SLOT_S))
    whole = outlook_of(MIDNIGHT_S, SLOT_S, carbon, price)
    short = outlook_of(MIDNIGHT_S, SLOT_S, carbon, price, np.array([6, 3]))
    found = [choose_start(each, empty(9.0, 9.0), two, MIDNIGHT_S) for each in (whole, short)]
    assert [(slot_of(each), each.run.zone) for each in found] == [(4, 1), (0, 1)]


def test_after_a_clock_was_set_back_it_is_decided_as_at_the_begin_of_the_forecast() -> None:
    """The library reads no memory before its arrays."""
    early_s, plan = MIDNIGHT_S - 5 * SLOT_S, empty(10.0)
    chosen = plan_all(grid([200.0, 100.0, 300.0]), plan, [work(slack=2)], early_s)[0]
    assert (chosen.start_s - early_s) / SLOT_S == 1
    assert plan.cores[0, :3].tolist() == [0.0, 1.0, 0.0]


def test_who_has_least_slack_chooses_first_and_answers_stand_in_the_order_asked() -> None:
    outlook = grid([200.0, 100.0, 120.0, 150.0])
    asked = [work(slack=3, cores=6.0), work(slack=1, cores=6.0), work(slack=2, cores=6.0)]
    found = plan_all(outlook, empty(10.0), asked, MIDNIGHT_S)
    assert [slot_of(each) for each in found] == [3, 1, 2]


def test_what_runs_keeps_its_cores_until_its_end_and_overdue_until_the_slot_ends() -> None:
    plan = empty(10.0)
    runs = [Running(0, MIDNIGHT_S + 2 * SLOT_S, 4.0), Running(0, MIDNIGHT_S - 1.0, 3.0)]
    assert plan_all(grid([1.0]), plan, [], MIDNIGHT_S, running=runs) == []
    assert plan.cores[0, :3].tolist() == [7.0, 4.0, 0.0]


def test_work_that_finds_no_room_now_is_held_against_the_first_start_with_room() -> None:
    """Let go now it would queue until the dirty evening: so it waits for the next clean hour."""
    outlook, plan = grid([100.0, 100.0, 500.0, 500.0, 110.0]), empty(10.0)
    plan.keep(0, MIDNIGHT_S, MIDNIGHT_S + 2 * SLOT_S, 9.0)
    chosen = choose_start(outlook, plan, work(cores=2.0), MIDNIGHT_S)
    assert slot_of(chosen) == 4 and chosen.saving == pytest.approx(0.78)
    waits = choose_start(outlook, plan, work(cores=2.0, slack=3), MIDNIGHT_S)
    assert (slot_of(waits), waits.why, waits.saving) == (2, StartReason.NO_ROOM, 0.0)
    queued = work(cores=2.0, slack=3)._replace(waits_for_room=False)
    queues = choose_start(outlook, plan, queued, MIDNIGHT_S)
    assert (slot_of(queues), queues.expected_s) == (0, MIDNIGHT_S + 2 * SLOT_S)


def test_what_is_reported_is_the_mean_over_the_run_then_and_now() -> None:
    outlook = grid([400.0, 300.0, 100.0, 100.0], [340.0] * 4)
    asked = work(runs_s=np.array([2 * SLOT_S, SLOT_S]))
    chosen = choose_start(outlook, empty(9.0, 9.0), asked, MIDNIGHT_S)
    assert chosen.run == Mean(0, 2 * SLOT_S, WATTS, 100.0, 50.0)
    assert chosen.run_now == Mean(1, SLOT_S, WATTS, 340.0, 50.0)


def test_no_data_is_reported_as_none_and_holds_nothing() -> None:
    nothing = np.full((1, 8), np.nan)
    outlook = outlook_of(MIDNIGHT_S, SLOT_S, nothing, nothing)
    chosen = choose_start(outlook, empty(9.0), work(), MIDNIGHT_S)
    assert slot_of(chosen) == 0
    assert (chosen.run.carbon_g_per_kwh, chosen.run.price_per_mwh) == (None, None)


def test_what_no_node_can_take_is_let_go_and_keeps_no_room() -> None:
    plan = empty(9.0)
    (chosen,) = plan_all(grid([9.0, 1.0]), plan, [work(runs_s=np.inf)], MIDNIGHT_S)
    assert (slot_of(chosen), chosen.why) == (0, StartReason.NO_ZONE)
    assert not plan.cores.any()
    free_cores(plan, chosen, 1.0)
    assert not plan.cores.any()


@pytest.mark.parametrize("cost", [np.inf, np.nan])
def test_a_rule_that_answers_with_no_number_holds_nothing(cost: float) -> None:
    broken = work()._replace(when=lambda slots: np.full(slots.wait_s.shape, cost))
    chosen = choose_start(grid([9.0, 1.0]), empty(9.0), broken, MIDNIGHT_S)
    assert (slot_of(chosen), chosen.why) == (0, StartReason.NO_CHOICE)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"runs_s": 0.0}, id="no-runtime"),
        pytest.param({"runs_s": np.nan}, id="runtime-unknown"),
        pytest.param({"runs_s": np.ones(2)}, id="a-zone-too-many"),
        pytest.param({"cores": -1.0}, id="fewer-cores-than-none"),
        pytest.param({"cores": np.nan}, id="cores-unknown"),
    ],
)
def test_a_workload_that_makes_no_sense_is_reported(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="workload 0"):
        plan_all(grid([1.0, 2.0]), empty(9.0), [work(**change)], MIDNIGHT_S)


@given(many(), st.floats(0.0, 0.5))
def test_the_more_a_wait_has_to_save_the_fewer_wait(
    world: tuple[Outlook, CorePlan, list[StartRequest]], more: float
) -> None:
    outlook, plan, asked = world
    assume(asked)
    little, much = (
        choose_start(
            outlook, plan, asked[0]._replace(thresholds=Thresholds(least_saving=share)), MIDNIGHT_S
        )
        for share in (0.02, 0.02 + more)
    )
    assert not much.start_s > MIDNIGHT_S or much.start_s == little.start_s
