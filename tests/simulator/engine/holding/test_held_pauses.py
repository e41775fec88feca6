"""A GreenPolicy pauses a job in dirty hours, and only as its limits and the job allow."""

from typing import Any

import numpy as np
import pytest

from greensched_operator.objects.green_policy import parse
from greensched_simulator.policy import policy_named
from greensched_simulator.runs.simulation import simulate
from greensched_simulator.testing.small_worlds import make_world

pytestmark = pytest.mark.engine

HOUR_S = 3600.0
# Three dirty hours, after one clean hour and before many.
GRID = [(hour * HOUR_S, 800.0 if 1 <= hour < 4 else 50.0, 50.0) for hour in range(24)]
JOB = {"runtime_s": 3 * HOUR_S, "deadline_s": 20 * HOUR_S, "save_every_s": 0.0,
       "startup_s": 60.0, "save_s": 30.0}  # fmt: skip
ONCE = "green-policy"
PAUSES = "green-policy+pause-if-worth"


def runs(policy: str = PAUSES, spec: dict[str, Any] | None = None, **job: float) -> np.ndarray:
    """Return begin and end of each run segment of a job that arrives at 0, [S,2]."""
    manifest = {"metadata": {"name": "p"}, "spec": {"mode": "enforce", **(spec or {})}}
    green = parse(manifest)
    assert green.faults == ()
    world = make_world([JOB | job], grids=[GRID])._replace(green_policy=green)
    segments = simulate(world, policy_named(policy)).run_segments
    return np.stack([segments.start_s, segments.end_s], axis=1)


def test_a_job_is_paused_in_dirty_hours_and_keeps_its_work() -> None:
    first, second = runs()
    assert first.tolist() == [0.0, HOUR_S + JOB["save_s"]]
    assert 4 * HOUR_S <= second[0] <= 4 * HOUR_S + 120.0
    done_s = HOUR_S + second[1] - second[0]
    assert done_s == pytest.approx(JOB["runtime_s"] + JOB["startup_s"])


@pytest.mark.parametrize(
    ("policy", "spec", "job"),
    [
        pytest.param(ONCE, {}, {}, id="not-asked-for"),
        pytest.param(PAUSES, {"pause": {"minimumRun": "9h"}}, {}, id="runs-too-briefly"),
        pytest.param(PAUSES, {"longestHold": "1h"}, {}, id="must-resume-in-a-dirty-hour"),
        pytest.param(PAUSES, {"maxHeldSharePercent": 5}, {}, id="above-the-held-share"),
        pytest.param(PAUSES, {"leastSavingPercent": 99}, {}, id="saves-too-little"),
        pytest.param(PAUSES, {}, {"save_every_s": np.inf}, id="cannot-be-suspended"),
        pytest.param(PAUSES, {}, {"deadline_s": np.inf}, id="no-deadline"),
        pytest.param(PAUSES, {}, {"deadline_s": 5.2 * HOUR_S}, id="no-slack"),
    ],
)
def test_a_job_is_not_paused(policy: str, spec: dict[str, Any], job: dict[str, float]) -> None:
    assert runs(policy, spec | {"carbonLimit": "none"}, **job).shape == (1, 2)


@pytest.mark.parametrize(
    ("shortest", "resumes_s"), [("0s", 4 * HOUR_S), ("3h", 4 * HOUR_S), ("5h", 6 * HOUR_S)]
)
def test_a_pause_is_as_long_as_the_policy_demands(shortest: str, resumes_s: float) -> None:
    _, second = runs(spec={"pause": {"minimumPause": shortest}})
    assert resumes_s <= second[0] <= resumes_s + 120.0


def test_a_job_that_lacks_time_to_save_ends_instead() -> None:
    assert runs(runtime_s=HOUR_S + 20.0, estimate_s=3 * HOUR_S).tolist() == [[0.0, HOUR_S + 20.0]]


def test_a_job_stops_at_its_next_checkpoint() -> None:
    first, second = runs(save_every_s=1000.0)
    cycles = np.ceil((HOUR_S - 60.0) / 1030.0)
    assert first[1] == pytest.approx(60.0 + cycles * 1030.0)
    assert first[1] + second[1] - second[0] == pytest.approx(3 * HOUR_S + 60.0)


def test_a_paused_job_has_the_planned_start_of_its_first_run() -> None:
    world = make_world([JOB], grids=[GRID])
    green = parse({"metadata": {"name": "p"}, "spec": {"mode": "enforce"}})
    schedule = simulate(world._replace(green_policy=green), policy_named(PAUSES))
    assert (schedule.planned_s[0], schedule.start_s[0]) == (0.0, 0.0)
