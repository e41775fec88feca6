"""A GreenPolicy beside services: replicas start at once, and jobs wait for room that they leave."""

from pathlib import Path

import numpy as np
import pytest

from greensched_operator.objects.green_policy import parse
from greensched_simulator.policy import policy_named
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import simulate
from greensched_simulator.testing.small_worlds import Fields, make_world
from greensched_simulator.world.scenario_loading import load_scenario
from greensched_simulator.world.services import is_replica
from greensched_simulator.world.world import build_world

pytestmark = pytest.mark.engine

HOUR = 3600.0
EXAMPLE = Path(__file__).parents[4] / "examples" / "scenarios" / "llm-on-two-gpus.yaml"
TRAINING: Fields = {"arrival_s": 60.0, "runtime_s": 3000.0, "gpus": 1.0}
HOUR_OF = {100.0: 4, 200.0: 6}  # the cleanest hour, and the next


def test_replicas_of_a_served_model_start_at_once_and_trainings_wait() -> None:
    world = build_world(load_scenario(EXAMPLE), 1)
    schedule, jobs = simulate(world, policy_named("green-policy")), world.jobs
    is_served = is_replica(jobs)
    assert is_served.sum() > 100
    assert schedule.planned_s[is_served] == pytest.approx(jobs.arrival_s[is_served], abs=0.0)
    waits_s = (schedule.planned_s - jobs.arrival_s)[~is_served]
    assert np.median(waits_s) > HOUR
    assert (schedule.end_s <= jobs.deadline_s)[~is_served].all()


def test_no_plan_foresees_when_an_autoscaler_removes_a_replica() -> None:
    """A training of both GPUs has room in no hour that is known: it gets the cleanest of all."""
    training = {**TRAINING, "gpus": 2.0}
    soon, late = (beside_a_replica(leaves_h, training).planned_s[1] for leaves_h in (5.0, 20.0))
    assert soon == late
    assert int(late // HOUR) == 4


@pytest.mark.parametrize(("leaves_h", "hours"), [
    pytest.param(2.5, {4}, id="which-is-gone-by-then"),
    pytest.param(20.0, {4, 6}, id="which-stays"),
])  # fmt: skip
def test_trainings_share_the_cleanest_hour_with_a_replica(leaves_h: float, hours: set[int]) -> None:
    _, *planned_s = beside_a_replica(leaves_h, TRAINING, TRAINING).planned_s.tolist()
    assert {int(at_s // HOUR) for at_s in planned_s} == hours


def beside_a_replica(leaves_h: float, *trainings: Fields) -> Schedule:
    """Return the schedule of trainings on two GPUs, one of which a replica has until it leaves."""
    replica = {
        "arrival_s": 0.0, "gpus": 1.0, "runtime_s": leaves_h * HOUR, "leaves_at_s": leaves_h * HOUR,
    }  # fmt: skip
    carbon = {hour: grams for grams, hour in HOUR_OF.items()}
    grid = [(hour * HOUR, carbon.get(hour, 600.0), 50.0) for hour in range(30)]
    node = {"gpu_capacity": 2.0, "gpu_idle_w": 50.0, "gpu_peak_w": 650.0}
    spec = {"mode": "enforce", "defaultDelay": "8h"}
    policy = parse({"metadata": {"name": "p"}, "spec": spec})
    world = make_world([replica, *trainings], [node], [grid])._replace(green_policy=policy)
    return simulate(world, policy_named("green-policy"))
