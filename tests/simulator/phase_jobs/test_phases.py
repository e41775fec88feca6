"""Jobs of phases, suspended and resumed: figures by hand, and what holds for all of them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_simulator.phase_jobs.phases import Phase, PhasedJob, Spent, duration_s, spent

BOOT = Phase("boot", 10.0, 50.0)  # 500 J
TRAIN = Phase("train", 20.0, 200.0)  # 4,000 J
SAVE = Phase("save", 5.0, 100.0, is_checkpoint=True)  # 500 J
JOB = PhasedJob((BOOT,), (TRAIN, SAVE, TRAIN, SAVE))  # 60 s, 9,500 J
QUICK = PhasedJob(JOB.startup, JOB.work, restart=(Phase("resume", 4.0, 25.0),))  # 100 J

phases = st.builds(
    Phase, st.just("phase"), st.floats(0.5, 100.0), st.floats(0.0, 500.0), st.booleans()
)
jobs = st.builds(
    PhasedJob,
    st.lists(phases.map(lambda p: Phase(p.name, p.duration_s, p.power_w)), max_size=2).map(tuple),
    st.lists(phases, min_size=1, max_size=6).map(tuple),
)


@pytest.mark.parametrize(
    ("suspended_after_s", "expected"),
    [
        pytest.param((), Spent(60.0, 9_500.0), id="never"),
        pytest.param((35.0,), Spent(70.0, 10_000.0), id="once-saved-only-the-startup-runs-again"),
        pytest.param((34.0,), Spent(94.0, 14_400.0), id="a-second-before-all-is-lost"),
        pytest.param((55.0,), Spent(90.0, 14_000.0), id="the-second-training-is-repeated"),
        pytest.param((4.0,), Spent(64.0, 9_700.0), id="while-starting-up"),
        pytest.param((10.0,), Spent(70.0, 10_000.0), id="when-the-startup-ends"),
        pytest.param((35.0, 65.0), Spent(100.0, 14_500.0), id="twice-with-one-checkpoint"),
        pytest.param((35.0, 40.0), Spent(75.0, 10_250.0), id="again-while-starting-up-again"),
    ],
)
def test_work_since_the_last_checkpoint_is_repeated_and_the_startup_too(
    suspended_after_s: tuple[float, ...], expected: Spent
) -> None:
    assert spent(JOB, suspended_after_s) == expected


def test_a_resumed_run_may_start_up_in_a_way_of_its_own() -> None:
    assert spent(QUICK) == spent(JOB)
    assert spent(QUICK, (35.0,)) == Spent(64.0, 9_600.0)


def test_a_moment_that_rounding_puts_before_a_checkpoint_is_its_end() -> None:
    job = PhasedJob((), (Phase("work", 0.1, 1.0), Phase("save", 0.2, 1.0, True), TRAIN))
    assert 0.1 + 0.2 != 0.3
    assert spent(job, (0.3,)).running_s == pytest.approx(20.3)


def test_constant_power_is_one_phase() -> None:
    assert spent(PhasedJob((), (TRAIN,))) == Spent(20.0, 4_000.0)
    assert spent(PhasedJob((), (TRAIN,)), (15.0,)) == Spent(35.0, 7_000.0)


@pytest.mark.parametrize(
    ("suspended_after_s", "message"),
    [
        pytest.param((60.0,), "60 s, when the job has ended", id="at-its-end"),
        pytest.param(
            (35.0, 70.0), "70 s, when the job has ended", id="at-the-end-of-a-resumed-run"
        ),
        pytest.param((0.0,), "not later than 0 s", id="before-it-has-begun"),
        pytest.param((35.0, 35.0), "not later than 35 s", id="twice-at-once"),
        pytest.param((math.nan,), "not later", id="never-at-all"),
    ],
)
def test_a_job_is_suspended_while_it_runs(
    suspended_after_s: tuple[float, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        spent(JOB, suspended_after_s)


@pytest.mark.parametrize(
    ("duration", "power"), [(0.0, 1.0), (-1.0, 1.0), (math.inf, 1.0), (1.0, -1.0), (1.0, math.nan)]
)
def test_a_phase_takes_time_and_draws_no_less_than_nothing(duration: float, power: float) -> None:
    with pytest.raises(ValueError, match="phase odd"):
        Phase("odd", duration, power)


def test_a_job_works_and_saves_nothing_before() -> None:
    with pytest.raises(ValueError, match="without a work phase"):
        PhasedJob((BOOT,), ())
    with pytest.raises(ValueError, match="a checkpoint in a startup phase"):
        PhasedJob((SAVE,), (TRAIN,))
    with pytest.raises(ValueError, match="a checkpoint in a startup phase"):
        PhasedJob((), (TRAIN,), restart=(SAVE,))


@given(jobs, st.floats(0.01, 0.99))
def test_being_suspended_costs_a_startup_at_least_and_a_whole_run_at_most(
    job: PhasedJob, share: float
) -> None:
    whole = spent(job)
    after_s = share * whole.running_s
    found = spent(job, (after_s,))
    starting_s = min(after_s, duration_s(job.startup))
    assert found.running_s >= whole.running_s + starting_s - 1e-4
    assert found.running_s <= whole.running_s + after_s + 1e-4
    assert found.energy_j >= whole.energy_j - 1e-6


@given(jobs, st.floats(0.01, 0.99))
def test_a_checkpoint_more_never_costs_more(job: PhasedJob, share: float) -> None:
    all_saved = tuple(Phase(p.name, p.duration_s, p.power_w, True) for p in job.work)
    after_s = share * spent(job).running_s
    safe = spent(PhasedJob(job.startup, all_saved), (after_s,))
    assert safe.running_s <= spent(job, (after_s,)).running_s + 1e-4
    assert safe.energy_j <= spent(job, (after_s,)).energy_j + 1e-1
