"""Rules that choose a start weigh zones by the energy that a run takes there, too."""

import math
import warnings

import numpy as np
import pytest
from numba.core.errors import NumbaExperimentalFeatureWarning

from greensched_simulator.arrays.moving import NO_LINKS
from greensched_simulator.policy import policy_named
from greensched_simulator.runs.run_inputs import estimates_in
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import simulate
from greensched_simulator.testing.small_worlds import Fields, even_links, make_world
from greensched_simulator.world.world import World

pytestmark = pytest.mark.engine

HOUR = 3600.0
NO_SLEEP = np.zeros((6, 0))
# The second zone has less carbon at first; the first one gets cleaner after two hours.
GRIDS = [[(0.0, 100.0, 50.0), (2 * HOUR, 60.0, 50.0)], [(0.0, 50.0, 50.0)]]
JOB: Fields = {"deadline_s": 8 * HOUR}


def ran(world: World, policy: str) -> Schedule:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumbaExperimentalFeatureWarning)
        return simulate(world, policy_named(policy))


@pytest.mark.parametrize(
    ("second", "start_s"),
    [
        pytest.param({}, 0.0, id="nodes-alike"),
        pytest.param({"pue": 3.0}, 2 * HOUR, id="three-times-the-pue"),
        pytest.param({"speed": 0.25}, 2 * HOUR, id="a-quarter-of-the-speed"),
        pytest.param({"speed": 4.0, "pue": 3.0}, 0.0, id="four-times-the-speed-too"),
    ],
)
def test_a_clean_grid_behind_nodes_that_take_more_is_no_reason_to_start(
    second: Fields, start_s: float
) -> None:
    """By grams: 100 now or 60 later in the first zone; 50, 150, 200 or 37.5 in the second."""
    world = make_world([JOB], [{"zone": 0}, {"zone": 1, **second}], GRIDS)
    assert ran(world, "lowest-window+least-carbon").start_s.tolist() == [start_s]


def test_a_network_changes_no_plan_of_work_without_data() -> None:
    nodes: list[Fields] = [{"zone": 0}, {"zone": 1, "pue": 3.0}]
    jobs: list[Fields] = [{**JOB, "arrival_s": hour * HOUR / 3} for hour in range(4)]
    alone, linked = (
        ran(make_world(jobs, nodes, GRIDS, links=links), "planned-window+weighted-cost")
        for links in (NO_LINKS, even_links())
    )
    assert linked.planned_s.tolist() == alone.planned_s.tolist()
    assert linked.node.tolist() == alone.node.tolist()


def test_a_zone_that_cannot_take_a_job_does_not_count_as_one_without_energy() -> None:
    nodes: list[Fields] = [{"zone": 0}, {"zone": 1, "cpu_capacity": 0.5}]
    world = make_world([JOB], nodes, GRIDS)
    (run_j,) = estimates_in(world, NO_SLEEP).run_j.tolist()
    assert run_j == [pytest.approx(10.0 * HOUR), math.inf]
