"""Jobs that never run: rejected on arrival, or offered a node that is too small for them."""

import warnings

import numpy as np
import pytest
from numba.core.errors import NumbaExperimentalFeatureWarning

from greensched_policies.encoding.slots import SlotColumns
from greensched_policies.kernel.plan import Plan
from greensched_policies.library.grid_table import grid_table
from greensched_policies.planning.outlook import SLOT_S
from greensched_policies.rules.catalogue import (
    BAD_WHEN_RULES,
    MAY_REJECT,
    WHEN_RULES,
)
from greensched_simulator.engine.engine import run
from greensched_simulator.engine.run import Given
from greensched_simulator.engine.state.choices import rules_of
from greensched_simulator.engine.state.cluster import idle_cluster, node_table
from greensched_simulator.engine.state.job_estimates import estimates_of
from greensched_simulator.engine.state.terms import RunConfig
from greensched_simulator.policy import (
    BAD_PLACINGS,
    PLACINGS,
    QUEUES,
    policies_named,
    policy_named,
)
from greensched_simulator.runs.run_inputs import cost_model
from greensched_simulator.runs.simulation import bill_of, billed_until_s, simulate
from greensched_simulator.testing.small_worlds import make_world
from greensched_simulator.world.node_outages import NO_OUTAGES

HOUR = 3600.0
BAD = policies_named("reject-all, reject-long, node-0")


@pytest.mark.parametrize("queue", QUEUES)
def test_what_is_rejected_holds_up_nobody(queue: str) -> None:
    big = {"cpu_cores": 10.0, "runtime_s": 9 * HOUR}
    jobs = [big, {"arrival_s": 5.0, "cpu_cores": 10.0}, {"arrival_s": 6.0}, big]
    ran = simulate(make_world(sorted(jobs, key=lambda job: job.get("arrival_s", 0.0))),
                   policy_named(f"reject-long+{queue}"))  # fmt: skip
    assert ran.node.tolist() == [-1, -1, 0, 0]
    assert sorted(ran.start_s[2:].tolist()) in ([5.0, 5.0 + HOUR], [5.0, 6.0])
    for column in (ran.planned_s, ran.start_s, ran.end_s):
        assert np.isnan(column[:2]).all()


def test_nothing_is_kept_in_the_plan_for_what_is_rejected() -> None:
    world = make_world([{"cpu_cores": 3.0}, {"cpu_cores": 5.0, "runtime_s": 9 * HOUR}])
    plan = Plan(np.zeros((1, 96)), np.array([10.0]))
    cluster = idle_cluster(
        world.nodes, node_table(world.nodes), world.jobs.gpus, np.empty((6, 0)), world.curve_watts
    )
    grids = world.grids
    forecast = grid_table(grids.starts, grids.times_s, grids.carbon_g_per_kwh, grids.price_per_mwh)
    terms = RunConfig(0, SLOT_S, 1, world.weights, cost_model(world), may_reject=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumbaExperimentalFeatureWarning)
        begins = Given(
            world.jobs,
            world.precedence,
            estimates_of(world.jobs, world.precedence, world.nodes, 1, np.zeros(1)),
            cluster,
            forecast,
            plan,
            terms,
            np.zeros(0),
            NO_OUTAGES,
        )
        run(begins, rules_of("reject-long", "spread"))
    assert plan.cores[0].tolist() == [3.0] * 4 + [0.0] * 92


@pytest.mark.parametrize(("estimate_s", "node"), [
    pytest.param(3600.0, 0, id="just-an-hour"),
    pytest.param(3601.0, -1, id="a-second-more"),
])  # fmt: skip
@pytest.mark.parametrize("wait_s", [0.0, 5 * HOUR])
def test_a_rule_that_may_reject_is_asked_also_without_slack(
    estimate_s: float, node: int, wait_s: float
) -> None:
    job = {"runtime_s": 60.0, "estimate_s": estimate_s, "deadline_s": 60.0 + wait_s}
    assert simulate(make_world([job]), policy_named("reject-long")).node.tolist() == [node]


@pytest.mark.parametrize(("queue", "nodes"), [
    pytest.param("oldest-fit", [0, -1, 0, 0], id="others-pass"),
    pytest.param("sjf", [0, -1, 0, 0], id="shortest-first"),
    pytest.param("easy", [0, -1, 0, 0], id="no-reservation-holds-them-up"),
    pytest.param("fcfs", [0, -1, -1, -1], id="nobody-passes-what-never-fits"),
])  # fmt: skip
def test_always_node_0_ends_with_jobs_that_never_fit_there(queue: str, nodes: list[int]) -> None:
    jobs = [{}, {"arrival_s": 1.0, "gpus": 1.0}, {"arrival_s": 2.0, "cpu_cores": 10.0},
            {"arrival_s": 3.0, "runtime_s": 9 * HOUR}]  # fmt: skip
    world = make_world(jobs, [{}, {"gpu_capacity": 1.0}, {}])
    ran = simulate(world, policy_named(f"node-0+{queue}"))
    assert ran.node.tolist() == nodes
    assert np.isnan(ran.start_s[1]) and ran.planned_s[1] == 1.0


def test_a_run_in_which_nothing_ran_is_billed_until_the_last_arrival() -> None:
    world = make_world([{}, {"arrival_s": 9 * HOUR}], length_s=HOUR)
    ran = simulate(world, policy_named("reject-all"))
    assert billed_until_s(world, ran) == 9 * HOUR
    bill = bill_of(world, ran, 9 * HOUR)
    assert (bill.energy_active_j.sum(), bill.energy_idle_j.sum()) == (0.0, 900 * HOUR)
    assert not bill.is_used.any()


def test_no_other_rule_ever_rejects() -> None:
    assert MAY_REJECT <= {*WHEN_RULES, *BAD_WHEN_RULES}
    dice = np.random.default_rng(0)
    slots = SlotColumns._make(dice.uniform(0.5, 9e4, (1, 50)) for _ in SlotColumns._fields)
    for name, rule in {**WHEN_RULES, **BAD_WHEN_RULES}.items():
        assert np.isinf(rule(slots)).any() == (name in MAY_REJECT)


def test_bad_policies_are_asked_for_by_name_alone() -> None:
    assert not set(BAD) & set(policies_named("all"))
    assert not {*BAD_WHEN_RULES, *BAD_PLACINGS} & {*WHEN_RULES, *PLACINGS}
    assert [policy.label for policy in BAD] == ["reject-all", "reject-long", "node-0"]
