"""DeepRM's environment by hand, and its published figures, which need no data."""

import numpy as np
import pytest

from greensched_simulator.reproductions import deeprm
from greensched_simulator.reproductions.deeprm_environment import (
    HORIZON,
    NO_JOB,
    NOT_PLACED,
    NOWHERE,
    RESOURCES,
    SLOTS,
    UNITS,
    VOID,
    DeepRmState,
    JobSequence,
    begin,
    earliest_offset,
    is_done,
    step,
)


def work(*jobs: tuple[int, int, int]) -> JobSequence:
    """Return jobs of length, units of resource 0 and of resource 1, that come at steps 1, 2, …"""
    table = np.array([(0, 0, 0), *jobs, *[(0, 0, 0)] * 5])
    return JobSequence(table[:, 0].copy(), table[:, 1:].copy())


def arrived(jobs: JobSequence, steps: int) -> DeepRmState:
    """Return the state after steps in which nothing was placed."""
    state = begin(jobs)
    for _ in range(steps):
        assert not step(state, jobs, VOID)
    return state


def chosen(state: DeepRmState, jobs: JobSequence, rule: str) -> int:
    return deeprm.best_fitting(state, jobs, deeprm.ALIGNMENT_SHARE[rule])


def test_the_published_figures_come_out() -> None:
    lines = deeprm.reproduce(None)
    assert len(lines) == 45
    assert [line for line in lines if not line.is_equal] == []


def test_placing_takes_no_time_and_waiting_one_step() -> None:
    jobs = work((2, 6, 1))
    state = arrived(jobs, 1)
    assert step(state, jobs, 0)
    assert state.clock.tolist() == [1]
    assert state.free[:3].tolist() == [[4, 9], [4, 9], [10, 10]]
    assert state.finish[1] == 3
    assert not step(state, jobs, VOID)
    assert state.clock.tolist() == [2]
    assert state.free[:2].tolist() == [[4, 9], [10, 10]]


def test_a_job_is_laid_out_behind_whoever_leaves_it_no_room() -> None:
    jobs = work((3, 6, 1), (2, 5, 1), (4, 4, 1))
    state = arrived(jobs, 3)
    assert [step(state, jobs, place) for place in (0, 1, 2)] == [True, True, True]
    assert state.finish[1:4].tolist() == [3 + 3, 3 + 3 + 2, 3 + 4]
    assert state.free[:6, 0].tolist() == [0, 0, 0, 1, 5, 10]


@pytest.mark.parametrize(
    ("length", "offset"),
    [
        pytest.param(4, 15, id="up-to-the-last-step-but-one"),
        pytest.param(5, NOWHERE, id="never-into-the-last"),
    ],
)
def test_the_last_step_of_the_horizon_stays_free(length: int, offset: int) -> None:
    jobs = work((15, 10, 1), (length, 10, 1))
    state = arrived(jobs, 2)
    step(state, jobs, 0)
    assert earliest_offset(state, jobs, 2) == offset


def test_what_cannot_be_placed_lets_time_pass() -> None:
    jobs = work((15, 10, 1), (5, 10, 1))
    state = arrived(jobs, 2)
    step(state, jobs, 0)
    assert not step(state, jobs, 1)
    assert state.clock.tolist() == [3]
    assert state.finish[2] == NOT_PLACED
    assert not step(state, jobs, 0), "the slot is empty"
    assert state.clock.tolist() == [4]


def test_whoever_finds_no_slot_waits_in_order_for_one() -> None:
    jobs = work(*[(1, 1, 1)] * (SLOTS + 2))
    state = arrived(jobs, SLOTS + 2)
    assert state.slots.tolist() == list(range(1, SLOTS + 1))
    assert state.backlog[: state.waiting[0]].tolist() == [SLOTS + 1, SLOTS + 2]
    step(state, jobs, 3)
    assert state.slots[3] == SLOTS + 1
    assert state.backlog[: state.waiting[0]].tolist() == [SLOTS + 2]
    step(state, jobs, 0)
    step(state, jobs, 5)
    assert (state.slots[0], state.slots[5]) == (SLOTS + 2, NO_JOB)


def test_a_sequence_is_done_when_all_have_come_and_are_finished() -> None:
    jobs = work((2, 1, 1), (1, 1, 1))
    state = arrived(jobs, 1)
    step(state, jobs, 0)
    told = []
    for action in (VOID, 0, VOID):
        told.append(is_done(state, jobs))
        step(state, jobs, action)
    assert told == [False, False, False]
    assert is_done(state, jobs)


@pytest.mark.parametrize(
    ("rule", "job"),
    [
        pytest.param("SJF", 2, id="SJF-the-shortest"),
        pytest.param("Tetris", 4, id="Tetris-most-units-where-most-are-free"),
        pytest.param("Packer", 5, id="Packer-the-shorter-of-these"),
    ],
)
def test_rules_choose_among_the_jobs_that_fit_now_and_of_equals_the_lowest_slot(
    rule: str, job: int
) -> None:
    jobs = work((1, 8, 1), (1, 1, 1), (1, 1, 1), (12, 1, 2), (3, 1, 2), (1, 3, 2))
    state = arrived(jobs, 6)
    step(state, jobs, 0)  # leaves 2 and 9 units in this step: job 6 fits in the next
    assert state.slots[:6].tolist() == [NO_JOB, 2, 3, 4, 5, 6]
    # Free units · demand: 2·1 + 9·1 = 11 for jobs 2 and 3, 2·1 + 9·2 = 20 for jobs 4 and 5.
    assert state.slots[chosen(state, jobs, rule)] == job


@pytest.mark.parametrize("rule", deeprm.ALIGNMENT_SHARE)
def test_rules_wait_where_no_job_fits_now(rule: str) -> None:
    jobs = work((1, 8, 1), (1, 3, 2))
    state = arrived(jobs, 2)
    step(state, jobs, 0)
    assert chosen(state, jobs, rule) == VOID


def test_random_actions_keep_to_the_machine_and_finish_every_job() -> None:
    for jobs in deeprm.draw_sequences(0.9)[:5]:
        state, random = begin(jobs), np.random.default_rng(0)
        while not is_done(state, jobs):
            step(state, jobs, int(random.integers(VOID + 1)))
            assert state.free.min() >= 0
            assert state.free.max() <= UNITS
        (came,) = np.nonzero(jobs.length_steps)
        assert (state.finish[came] - jobs.length_steps[came] >= came).all()


def test_nobody_arrives_at_step_0_and_jobs_are_as_the_paper_says() -> None:
    sequences = deeprm.draw_sequences(0.7)
    length = np.stack([jobs.length_steps for jobs in sequences])
    demand = np.stack([jobs.demand for jobs in sequences])[length > 0]
    assert length.shape == (100, 50)
    assert not length[:, 0].any()
    assert set(np.unique(length)) == {0, 1, 2, 3, 10, 11, 12, 13, 14, 15}
    assert set(np.unique(demand.max(axis=1))) == {5, 6, 7, 8, 9, 10}
    assert set(np.unique(demand.min(axis=1))) == {1, 2}
    assert demand.shape[1] == RESOURCES
    assert length.max() < HORIZON


def test_means_are_over_all_jobs_and_a_cut_leaves_some_out() -> None:
    jobs = work((2, 10, 1), (1, 10, 1), (4, 10, 1))
    # Job 1 runs in steps 1 and 2, job 2 in 3, job 3 in 4 to 7.
    found = deeprm.measure([padded(jobs)], deeprm.by_rule("SJF"))
    assert found == pytest.approx((np.mean([2 / 2, 2 / 1, 5 / 4]), 3.0, 2 / 3, 1.0))
    cut = deeprm.measure([padded(jobs)], deeprm.by_rule("SJF", end=3))
    assert cut == pytest.approx((1.0, 2.0, 0.0, 1 / 3))


def padded(jobs: JobSequence) -> JobSequence:
    """Return the jobs in a sequence of the length that is measured."""
    length = np.zeros(deeprm.STEPS, dtype=np.int64)
    demand = np.zeros((deeprm.STEPS, RESOURCES), dtype=np.int64)
    length[: jobs.length_steps.size] = jobs.length_steps
    demand[: jobs.length_steps.size] = jobs.demand
    return JobSequence(length, demand)
