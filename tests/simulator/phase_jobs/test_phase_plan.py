"""The cheapest plan of a job of phases: by hand, and against all schedules there are."""

import math
import re
from collections.abc import Sequence
from functools import cache
from itertools import groupby, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greensched_core.errors import BadInput
from greensched_simulator.phase_jobs.phases import (
    Phase,
    PhasedJob,
    duration_s,
    energy_within_j,
    phases_ended,
    spent,
)
from greensched_simulator.phase_jobs.plan import PhasePlan, RunSegment, cheapest_plan
from greensched_simulator.phase_jobs.steps import steps_of

HOUR_S = 3600.0
BOOT = Phase("boot", HOUR_S, 1000.0)  # 1 kWh
TRAIN = Phase("train", HOUR_S, 2000.0)  # 2 kWh
SAVED = Phase("train", HOUR_S, 2000.0, is_checkpoint=True)
JOB = PhasedJob((BOOT,), (SAVED, TRAIN))
QUICK = PhasedJob((BOOT,), (SAVED, TRAIN), restart=())
UNSAVED = PhasedJob((BOOT,), (TRAIN, TRAIN))
LONG = PhasedJob((), (Phase("train", 2.5 * HOUR_S, 1000.0),))
LATE = PhasedJob((), (Phase("train", 1.5 * HOUR_S, 1000.0, True), TRAIN))


@pytest.mark.parametrize(
    ("job", "per_kwh", "run_segments", "cost"),
    [
        pytest.param(
            JOB, [10, 10, 22, 10, 16], [(0, 2, 1), (3, 2, 2)], 72.0,
            id="a-dear-slot-is-worth-a-second-startup",
        ),
        pytest.param(
            JOB, [10, 10, 20, 10, 16], [(0, 3, 2)], 70.0, id="one-less-dear-is-not",
        ),
        pytest.param(
            JOB, [10, 10, 21, 10, 16], [(0, 3, 2)], 72.0, id="nor-where-it-comes-to-the-same",
        ),
        pytest.param(
            UNSAVED, [10, 10, 100, 10, 10], [(2, 3, 2)], 140.0,
            id="without-a-checkpoint-it-runs-in-one-piece",
        ),
        pytest.param(
            QUICK, [10, 10, 100, 10, 90], [(0, 2, 1), (3, 1, 2)], 50.0,
            id="a-resumed-run-starts-up-in-its-own-way",
        ),
        pytest.param(
            QUICK, [1, 99, 9, 9, 99], [(0, 1, 0), (2, 2, 2)], 37.0,
            id="which-it-does-too-when-it-has-saved-nothing",
        ),
        pytest.param(
            LONG, [5, 5, 3, 4, 8], [(1, 3, 1)], 10.0, id="of-its-last-slot-it-takes-what-it-needs",
        ),
        pytest.param(
            LATE, [1, 1, 90, 1, 1], [(0, 2, 1), (3, 1, 2)], 4.5,
            id="work-behind-the-checkpoint-is-repeated",
        ),
        pytest.param(
            LATE, [1, 7, 7, 2, 2], [(2, 3, 2)], 12.0, id="unless-that-comes-too-dear",
        ),
        pytest.param(
            UNSAVED, [7, 1, 1, 1, 1, 1], [(1, 3, 2)], 5.0, id="of-equal-starts-it-takes-the-first",
        ),
        pytest.param(
            LONG, [0, 50, 5, 5, 5], [(2, 3, 1)], 12.5, id="it-does-not-run-for-nothing",
        ),
        pytest.param(
            LONG, [-1, 50, 5, 5, 5], [(0, 1, 0), (2, 3, 1)], 11.5, id="unless-that-earns-something",
        ),
    ],
)  # fmt: skip
def test_the_cheapest_plan_by_hand(
    job: PhasedJob, per_kwh: list[float], run_segments: list[tuple[int, int, int]], cost: float
) -> None:
    found = cheapest_plan(job, HOUR_S, per_kwh)
    assert found.run_segments == tuple(RunSegment(*each) for each in run_segments)
    assert found.cost == pytest.approx(cost)


def test_a_plan_tells_what_it_takes() -> None:
    found = cheapest_plan(LATE, HOUR_S, [9, 9, 1, 1, 90, 90, 1.5, 9], earliest_slot=1)
    assert found.run_segments == (RunSegment(2, 2, 1), RunSegment(6, 1, 2))
    assert found.running_slots.tolist() == [2, 3, 6]
    assert found.energy_j == pytest.approx(4.5 * 3.6e6)  # half an hour of 2 kW is lost
    assert found.running_s == 3.0 * HOUR_S
    assert found.end_s == 7.0 * HOUR_S
    assert spent(LATE, found.suspended_after_s) == (found.running_s, found.energy_j)


def test_it_keeps_to_its_slots() -> None:
    per_kwh = [1.0, 1.0, 1.0, 50.0, 40.0, 30.0, 20.0, math.nan]
    assert cheapest_plan(JOB, HOUR_S, per_kwh, deadline_slot=7).run_segments[0].first_slot == 0
    later = cheapest_plan(JOB, HOUR_S, per_kwh, earliest_slot=3, deadline_slot=7)
    assert later.run_segments == (RunSegment(4, 3, 2),)
    assert later.end_s == 7.0 * HOUR_S


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        pytest.param({"per_kwh": [1, 2, math.nan, 4, math.nan]}, r"slot 2 is nan: .* \(2 have none",
                     id="a-slot-that-is-not-known"),
        pytest.param({"per_kwh": [1, 2, 3, math.inf], "earliest_slot": 1}, "slot 3 is inf: give",
                     id="nor-finite"),
        pytest.param({"deadline_slot": 2}, "use 2 slots from slot 0 on, and takes 3 slots of 3600",
                     id="a-deadline-too-early"),
        pytest.param({"earliest_slot": 3}, "use 2 slots from slot 3 on", id="an-arrival-too-late"),
        pytest.param({"deadline_slot": 6}, "per_kwh has 5 slots", id="an-unknown-deadline"),
        pytest.param({"earliest_slot": 5}, "earliest_slot is 5", id="no-slot-at-all"),
        pytest.param({"earliest_slot": -1}, "earliest_slot is -1", id="a-slot-before-the-first"),
        pytest.param({"per_kwh": []}, "per_kwh has 0 slots", id="an-empty-series"),
        pytest.param({"slot_s": 0.0}, "slot_s is 0", id="slots-without-a-length"),
        pytest.param({"slot_s": math.nan}, "slot_s is nan", id="slots-of-no-known-length"),
    ],
)  # fmt: skip
def test_what_cannot_be_planned_is_refused(given_: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"slot_s": HOUR_S, "per_kwh": [1, 2, 3, 4, 5]} | given_
    with pytest.raises(BadInput, match=message):
        cheapest_plan(JOB, **arguments)


def test_a_job_that_just_fits_only_when_suspended_is_planned() -> None:
    boot = Phase("boot", 5 * HOUR_S, 1000.0)
    job = PhasedJob((boot,), (TRAIN,), restart=())
    assert cheapest_plan(job, HOUR_S, [1, 1, 1]).run_segments == (
        RunSegment(0, 1, 0),
        RunSegment(2, 1, 1),
    )
    with pytest.raises(BadInput, match="use 2 slots from slot 0 on, and takes 6 slots"):
        cheapest_plan(job, HOUR_S, [1, 1])


def test_places_of_the_work_are_shared_by_all_who_reach_them() -> None:
    work = (Phase("train", HOUR_S, 200.0, is_checkpoint=True),) * 799
    assert steps_of(PhasedJob((BOOT,), work), HOUR_S).energy_kwh.size == 800 * 1 + 799
    tenth = Phase("boot", 0.1, 1000.0)  # three are a little more than 0.3
    saved = Phase("train", 0.1, 1000.0, is_checkpoint=True)
    job = PhasedJob((tenth,) * 3, (saved,) * 30)
    assert steps_of(job, 0.3).energy_kwh.size == 31 * 1 + 3 * 10


def bill(
    job: PhasedJob, slot_s: float, per_kwh: Sequence[float], runs: Sequence[bool]
) -> float | None:
    """Return what it costs to run just in these slots; None if the job does not end in the last."""
    cost, saved, startup, has_ended = 0.0, 0, job.startup, False
    for is_running, group in groupby(range(len(runs)), key=lambda slot: runs[slot]):
        slots = list(group)
        if not is_running:
            continue
        if has_ended:
            return None
        phases = (*startup, *job.work[saved:])
        for place, slot in enumerate(slots):
            if has_ended:
                return None
            has_ended = phases_ended(phases, (place + 1) * slot_s) == len(phases)
            until_s = math.inf if has_ended else (place + 1) * slot_s
            energy_j = energy_within_j(phases, until_s) - energy_within_j(phases, place * slot_s)
            cost += per_kwh[slot] * energy_j / 3.6e6
        ended = max(0, phases_ended(phases, len(slots) * slot_s) - len(startup))
        saved = max(
            (number for number in range(saved + 1, saved + ended + 1)
             if job.work[number - 1].is_checkpoint),
            default=saved,
        )  # fmt: skip
        startup = job.startup if job.restart is None else job.restart
    return cost if has_ended else None


def pattern(plan: PhasePlan, slots: int) -> list[bool]:
    running = set(plan.running_slots.tolist())
    return [slot in running for slot in range(slots)]


# In slots of 60 s: some phases take quarters of one, so that run segments meet at the same places,
# some do not. Rates that lie far apart make pauses worth their while.
durations = st.one_of(st.integers(1, 6).map(lambda quarters: 15.0 * quarters), st.floats(1, 90))
power = st.sampled_from([0.0, 100.0, 250.0, 1000.0])
startups = st.lists(st.builds(Phase, st.just("boot"), durations, power), max_size=2).map(tuple)
works = st.lists(
    st.builds(Phase, st.just("work"), durations, power, st.sampled_from([True, True, False])),
    min_size=1, max_size=5,
).map(tuple)  # fmt: skip
jobs = st.builds(PhasedJob, startups, works, st.none() | startups)
rates = st.sampled_from([0.0, 1.0, 10.0, 100.0, 1000.0]) | st.floats(0, 500)
few = st.lists(rates, min_size=1, max_size=6) | st.lists(rates, min_size=7, max_size=9)
signed = st.lists(rates | st.floats(-200, 0), min_size=6, max_size=9)
many = st.lists(rates, min_size=20, max_size=60)


def planned(job: PhasedJob, per_kwh: Sequence[float]) -> PhasePlan | None:
    try:
        return cheapest_plan(job, 60.0, per_kwh)
    except BadInput:
        return None


@given(jobs, few | signed)
@settings(max_examples=500)
def test_no_schedule_of_all_is_cheaper(job: PhasedJob, per_kwh: list[float]) -> None:
    count = len(per_kwh)
    bills = [bill(job, 60.0, per_kwh, runs) for runs in product((False, True), repeat=count)]
    found = planned(job, per_kwh)
    least = min((each for each in bills if each is not None), default=None)
    assert (found is None) == (least is None)
    if found is not None:
        assert found.cost == pytest.approx(least, abs=1e-9)
        assert found.cost == pytest.approx(
            bill(job, 60.0, per_kwh, pattern(found, count)), abs=1e-9
        )


def searched(job: PhasedJob, slot_s: float, per_kwh: Sequence[float]) -> float:
    """Return the least cost, infinite if there is none: run segment by run segment, sharing
    nothing.
    """

    @cache
    def least(begin: int, saved: int, is_resumed: bool) -> float:
        startup = job.restart if is_resumed and job.restart is not None else job.startup
        phases, found = (*startup, *job.work[saved:]), math.inf
        for first in range(begin, len(per_kwh)):
            cost, before_j = 0.0, 0.0
            for slot in range(first, len(per_kwh)):
                length_s = (slot + 1 - first) * slot_s
                spent_j = energy_within_j(phases, length_s)
                cost += per_kwh[slot] * (spent_j - before_j) / 3.6e6
                before_j, ended = spent_j, phases_ended(phases, length_s)
                if ended == len(phases):
                    found = min(found, cost)
                    break
                done = range(saved + 1, saved + 1 + ended - len(startup))
                kept = [number for number in done if job.work[number - 1].is_checkpoint]
                found = min(found, cost + least(slot + 2, max(kept, default=saved), True))
        return found

    return least(0, 0, False)


longer = st.builds(
    PhasedJob, startups, st.lists(works, min_size=1, max_size=3).map(lambda each: sum(each, ()))
)


@given(longer, st.lists(rates | st.floats(-20, 0), min_size=12, max_size=24))
def test_no_schedule_of_a_longer_job_is_cheaper(job: PhasedJob, per_kwh: list[float]) -> None:
    found = planned(job, per_kwh)
    cost = math.inf if found is None else found.cost
    assert cost == pytest.approx(searched(job, 60.0, per_kwh), abs=1e-9)


@given(jobs, many)
def test_a_plan_takes_what_it_says(job: PhasedJob, per_kwh: list[float]) -> None:
    found = planned(job, per_kwh)
    if found is not None:
        told = bill(job, 60.0, per_kwh, pattern(found, len(per_kwh)))
        assert found.cost == pytest.approx(told, abs=1e-9)
        whole = spent(job, found.suspended_after_s)
        assert found.energy_j == pytest.approx(whole.energy_j, abs=1e-3)
        assert found.running_s == pytest.approx(whole.running_s, abs=1e-4)
        paused_s = found.end_s - found.running_s - 60.0 * found.run_segments[0].first_slot
        gaps = np.diff(found.running_slots) - 1
        assert paused_s == pytest.approx(60.0 * gaps.sum(), abs=1e-6)


@given(jobs, many)
def test_each_run_segment_saves_something(job: PhasedJob, per_kwh: list[float]) -> None:
    found = planned(PhasedJob(job.startup, job.work), per_kwh)
    saved = [each.saved for each in found.run_segments] if found else []
    assert saved == sorted(set(saved))


@given(jobs, many)
def test_no_single_start_is_cheaper(job: PhasedJob, per_kwh: list[float]) -> None:
    needed = math.ceil((duration_s((*job.startup, *job.work)) - 1e-6) / 60.0)
    found = planned(job, per_kwh)
    for begin in range(len(per_kwh) - needed + 1):
        runs = [begin <= slot < begin + needed for slot in range(len(per_kwh))]
        told = bill(job, 60.0, per_kwh, runs)
        assert found is not None and told is not None
        assert found.cost <= told + 1e-9


@given(jobs, many, st.integers(0, 10), st.integers(10, 20))
def test_more_slack_never_costs_more(
    job: PhasedJob, per_kwh: list[float], earliest: int, deadline: int
) -> None:
    try:
        tight = cheapest_plan(job, 60.0, per_kwh, earliest_slot=earliest, deadline_slot=deadline)
    except BadInput:
        return
    assert cheapest_plan(job, 60.0, per_kwh).cost <= tight.cost + 1e-9


@given(jobs, st.floats(0.001, 500), st.integers(0, 9))
def test_where_all_slots_cost_the_same_it_runs_at_once_and_in_one_piece(
    job: PhasedJob, rate: float, earliest: int
) -> None:
    job = PhasedJob(job.startup, job.work)
    found = cheapest_plan(job, 60.0, [rate] * 60, earliest_slot=earliest)
    assert [each.first_slot for each in found.run_segments] == [earliest]


@given(many, st.integers(1, 20))
def test_where_pausing_is_free_the_cheapest_slots_are_taken(
    per_kwh: list[float], slots: int
) -> None:
    job = PhasedJob((), (Phase("train", 60.0, 6e4, is_checkpoint=True),) * slots)  # 1 kWh a slot
    found = cheapest_plan(job, 60.0, per_kwh)
    assert found.cost == pytest.approx(math.fsum(sorted(per_kwh)[:slots]), abs=1e-9)


def test_the_example_in_the_documentation_prints_what_stands_there(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (repository / "docs" / "simulator.md").read_text(encoding="utf-8")
    example = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", page, re.DOTALL)
    assert example is not None
    exec(example[1], {})
    assert capsys.readouterr().out == example[2]
