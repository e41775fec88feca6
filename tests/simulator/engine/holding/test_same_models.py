"""A model that chooses starts is shown the same in the simulator and by the operator."""

from typing import Any

import numpy as np
import pytest

from greensched_operator.objects.green_policy import GreenPolicy, parse
from greensched_policies.learned.heads import WHEN
from greensched_policies.learned.known_nets import known_net
from greensched_policies.library.nets import CandidateNet
from greensched_simulator.policy import policy_named
from greensched_simulator.runs.simulation import simulate
from greensched_simulator.testing.operator_beside import decided_by_operator
from greensched_simulator.world.world import World
from tests.policies.learned.random_nets import NetShape, graph_of
from tests.simulator.engine.holding import test_same_holds, test_same_pauses

pytestmark = pytest.mark.engine

NETS = {
    "a-rule-and-its-correction": NetShape((16, 16)),
    "a-net-alone": NetShape((16, 16), has_prior=False),
    "three-layers": NetShape((8, 8, 8), has_prior=False),
}
SPEC = {"mode": "enforce", "defaultDelay": "5h", "whenPolicy": "onnx"}


def policy_with(**spec: Any) -> GreenPolicy:
    """Return a policy whose model chooses starts."""
    policy = parse({"metadata": {"name": "p"}, "spec": SPEC | spec})
    assert policy.faults == ()
    return policy


def net_of(name: str, seed: int) -> CandidateNet:
    """Return a net with random weights."""
    return known_net(graph_of(WHEN, NETS[name], seed), WHEN)


def drawn(seed: int, name: str, policy: GreenPolicy) -> World:
    """Return a world in which a net with random weights chooses starts."""
    world = test_same_holds.drawn(seed)
    return world._replace(green_policy=policy, when_net=net_of(name, seed))


@pytest.mark.parametrize(("seed", "name"), test_same_holds.cases_of(test_same_holds.SEEDS, NETS))
def test_both_release_each_job_when_the_model_says(seed: int, name: str) -> None:
    policy = policy_with()
    test_same_holds.assert_same_releases(drawn(seed, name, policy), policy)


@pytest.mark.parametrize("seed", test_same_holds.SEEDS[:6])
def test_both_show_the_model_the_weights_and_the_target_of_the_policy(seed: int) -> None:
    policy = policy_with(
        weights={"cost": 3, "performance": 0}, onTimeTargetPercent=90, runtimeErrorPercent=60
    )
    test_same_holds.assert_same_releases(drawn(seed, "a-net-alone", policy), policy)


def test_nets_choose_other_starts_than_the_rule() -> None:
    others = 0
    for seed in test_same_holds.SEEDS:
        world = drawn(seed, "a-net-alone", policy_with())
        ruled = world._replace(green_policy=policy_with(whenPolicy="planned-window"))
        by_net, by_rule = (simulate(each, policy_named("green-policy")) for each in (world, ruled))
        others += int((by_net.planned_s != by_rule.planned_s).sum())
    assert others > 20


@pytest.mark.parametrize("seed", test_same_pauses.SEEDS)
def test_both_pause_each_job_when_the_model_says(seed: int) -> None:
    policy = policy_with(pause={"minimumRun": "1m", "minimumPause": "0s"}, leastSavingPercent=0)
    world = test_same_pauses.drawn(seed, policy)
    world = world._replace(when_net=net_of("a-rule-and-its-correction", seed))
    schedule = simulate(world, policy_named("green-policy+pause-if-worth"))
    operator = decided_by_operator(world, policy, schedule, pauses=True)
    expected = [operator.starts_s[job] for job in range(world.jobs.arrival_s.size)]
    assert schedule.planned_s == pytest.approx(np.array(expected), abs=1e-3)
    segments = schedule.run_segments
    runs = np.bincount(segments.job[segments.worker == 0], minlength=len(expected))
    pauses = np.bincount([job for job, _ in operator.paused], minlength=len(expected))
    assert (runs - 1 == pauses).all()


def test_the_rule_answers_where_a_net_gives_no_number() -> None:
    world = drawn(test_same_holds.SEEDS[0], "a-net-alone", policy_with())
    broken = net_of("a-net-alone", 0)._replace(offset=float("inf"))
    ruled = world._replace(green_policy=policy_with(whenPolicy="planned-window"))
    by_net = simulate(world._replace(when_net=broken), policy_named("green-policy"))
    by_rule = simulate(ruled, policy_named("green-policy"))
    assert (by_net.planned_s == by_rule.planned_s).all()
