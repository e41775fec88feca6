"""The loop of plain worlds does what the engine's loop for all worlds does."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.core.errors import NumbaExperimentalFeatureWarning

from greensched_policies.costs.cost import Floats
from greensched_policies.kernel.plan import Plan
from greensched_simulator.engine.engine import run
from greensched_simulator.engine.run import Given
from greensched_simulator.engine.state.choices import rules_of
from greensched_simulator.engine.state.cluster import idle_cluster, node_table
from greensched_simulator.engine.state.recorded import Recorded
from greensched_simulator.policy import policy_named
from greensched_simulator.runs.looking_ahead import empty_plan, forecast_of, looks_ahead
from greensched_simulator.runs.run_inputs import estimates_in, planned_jobs, run_config_of
from greensched_simulator.runs.sleep_tables import sleep_table
from greensched_simulator.testing.random_worlds import random_world
from greensched_simulator.world.world import World

pytestmark = pytest.mark.engine

POLICIES = ("carbon-time+weighted-cost", "planned-window+least-carbon", "run-now+spread",
            "lowest-window+first-fit+sleep-at-once", "reject-long+bin-pack", "node-0")  # fmt: skip


def recorded(world: World, name: str, steps_s: Floats, plan: Plan | None = None) -> Recorded:
    """Return what a run records that looks at some steps of the grid, or at none."""
    policy = policy_named(name)
    plan = empty_plan(world, is_looked_at=looks_ahead(world, policy)) if plan is None else plan
    sleep = sleep_table(world, policy)
    estimates = estimates_in(world, sleep)
    only_node_0 = policy.placing.only_node_0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumbaExperimentalFeatureWarning)
        cluster = idle_cluster(
            world.nodes, node_table(world.nodes), world.jobs.gpus, sleep, world.curve_watts,
            only_node_0=only_node_0,
        )  # fmt: skip
        begins = Given(
            planned_jobs(world, estimates), world.precedence, estimates, cluster,
            forecast_of(world, in_slots=True), plan, run_config_of(world, policy), steps_s,
            world.outages,
        )  # fmt: skip
        return run(begins, rules_of(policy.when, policy.placing.rule))[0]


@settings(max_examples=80)
@given(st.integers(0, 2**32), st.sampled_from(POLICIES))
def test_who_looks_at_nothing_beside_is_run_as_who_looks_at_the_grids_steps(
    seed: int, name: str
) -> None:
    world = random_world(seed, "data gangs")
    plain = recorded(world, name, np.zeros(0))
    watched = recorded(world, name, world.grids.times_s.copy())
    for ours, theirs in zip(plain, watched, strict=True):
        assert ours.tobytes() == theirs.tobytes()


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.sampled_from(("run-now+spread", "node-0", "run-now+first-fit")))
def test_who_starts_at_once_does_the_same_without_a_plan(seed: int, name: str) -> None:
    world = random_world(seed, "data gangs")
    planned = recorded(world, name, np.zeros(0), empty_plan(world))
    ours = recorded(world, name, np.zeros(0))
    assert not looks_ahead(world, policy_named(name))
    assert empty_plan(world, is_looked_at=False).cores.size == 0
    for column in ("node", "placed_s", "start_s", "end_s", "planned_s"):
        np.testing.assert_array_equal(getattr(ours, column), getattr(planned, column))
