"""What the GPUs of a node take is what the jobs there draw, each by its own kind."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greensched_simulator.policy import policy_named
from greensched_simulator.runs.simulation import bill_of, billed_until_s, simulate
from greensched_simulator.testing.random_worlds import random_world


@pytest.mark.parametrize("kind", ["", "gangs", "pauses", "failures"])
@settings(max_examples=25)
@given(seed=st.integers(0, 2**31))
def test_gpus_take_the_sum_over_jobs_of_their_own_share_of_the_range(kind: str, seed: int) -> None:
    world = random_world(seed, kind)
    world = world._replace(grids=world.grids._replace(pue_relative=np.zeros(0)))
    schedule = simulate(world, policy_named("carbon-time+weighted-cost"))
    until_s = billed_until_s(world, schedule)
    jobs, nodes, ran = world.jobs, world.nodes, schedule.run_segments
    resting = world._replace(jobs=jobs._replace(gpu_ratio=np.zeros(jobs.gpus.size)))
    took_j, without_j = (
        bill_of(each, schedule, until_s).energy_active_j for each in (world, resting)
    )
    range_w = ((nodes.gpu_peak_w - nodes.gpu_idle_w) * nodes.pue)[ran.node]
    seconds = np.minimum(ran.end_s, until_s) - ran.start_s
    drawn_j = (jobs.gpus * jobs.gpu_ratio)[ran.job] * range_w * seconds
    of_nodes_j = np.bincount(ran.node, drawn_j, nodes.zone.size)
    np.testing.assert_allclose(took_j - without_j, of_nodes_j, rtol=1e-9, atol=1e-3)
