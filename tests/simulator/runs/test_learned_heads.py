"""A bundle's heads decide in the simulator as agents that answer by the same nets."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greensched_core.errors import BadInput
from greensched_operator.objects.green_policy import GreenPolicy, Mode
from greensched_policies.learned.card import SHIPPED_PRIOR
from greensched_policies.learned.heads import HOW_FAST, WHERE, Head
from greensched_policies.learned.known_nets import known_net
from greensched_policies.library.nets import CandidateNet, KernelNet, packed
from greensched_simulator.environments.preparation import HeadName
from greensched_simulator.environments.single import GreenSchedEnv
from greensched_simulator.policy import Policy, policy_named
from greensched_simulator.runs.learned_heads import LearnedHeads, heads_of
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import simulate
from greensched_simulator.scenario.bundled_net import shipped_net
from greensched_simulator.testing.random_worlds import random_world
from greensched_simulator.testing.small_worlds import bytes_of
from greensched_simulator.world.world import World
from tests.policies.learned.random_nets import NetShape, graph_of

pytestmark = pytest.mark.engine

FEW = settings(max_examples=10)
seeds = st.integers(0, 2**31)
SHAPE = NetShape((16, 16), has_prior=False)
PRIOR = f"onnx:{SHIPPED_PRIOR}"


def net_of(head: Head, seed: int) -> CandidateNet:
    """Return a net with random weights."""
    return known_net(graph_of(head, SHAPE, seed), head)


def played_by(net: CandidateNet, world: World, head: HeadName, policy: str) -> Schedule:
    """Return the schedule of an agent that takes the candidate that the net rates best."""
    rate, env = KernelNet(net), GreenSchedEnv([world], policy, head)
    seen, _ = env.reset(seed=0)
    is_over = not seen["mask"].any()
    while not is_over:
        count = int(seen["mask"].sum())
        costs = rate(seen["candidates"][None, :count], seen["context"][None])
        seen, _, is_over, _, _ = env.step(int(np.argmin(costs[0])))
    return env.schedule()


def same_figures(one: Schedule, other: Schedule) -> bool:
    return np.array_equal(one.node, other.node) and np.allclose(
        one.end_s, other.end_s, rtol=0.0, atol=1e-3, equal_nan=True
    )


@pytest.mark.parametrize("kind", ["", "pauses graphs", "failures"])
@FEW
@given(seed=seeds)
def test_nodes_are_chosen_as_by_an_agent_with_that_net(kind: str, seed: int) -> None:
    world, net = random_world(seed, kind), net_of(WHERE, seed)
    schedule = simulate(
        world, Policy("carbon-time", "onnx", bundle="b"), LearnedHeads(where=packed(net))
    )
    assert bytes_of(schedule) == bytes_of(
        played_by(net, world, "where", "carbon-time+weighted-cost")
    )


@pytest.mark.parametrize("kind", ["", "gangs"])
@FEW
@given(seed=seeds)
def test_power_caps_are_chosen_as_by_an_agent_with_that_net(kind: str, seed: int) -> None:
    world, net = random_world(seed, kind), net_of(HOW_FAST, seed)
    schedule = simulate(
        world,
        Policy("carbon-time", "spread", cap="onnx", bundle="b"),
        LearnedHeads(how_fast=packed(net)),
    )
    assert same_figures(schedule, played_by(net, world, "how_fast", "carbon-time+spread"))


def test_nets_choose_other_nodes_and_power_caps_than_the_rules() -> None:
    nodes = caps = 0
    for seed in range(8):
        world = random_world(seed)
        ruled = simulate(world, policy_named("run-now+spread"))
        heads = LearnedHeads(
            where=packed(net_of(WHERE, seed)), how_fast=packed(net_of(HOW_FAST, seed))
        )
        by_net = simulate(world, Policy("run-now", "onnx", cap="onnx", bundle="b"), heads)
        nodes += int((by_net.node != ruled.node).sum())
        caps += by_net.caps.node.size
    assert nodes > 20
    assert caps > 20


@FEW
@given(seed=seeds)
def test_rules_answer_where_nets_give_no_number(seed: int) -> None:
    world, broken = random_world(seed), float("nan")
    heads = LearnedHeads(
        where=packed(net_of(WHERE, seed)._replace(offset=broken)),
        how_fast=packed(net_of(HOW_FAST, seed)._replace(offset=broken)),
    )
    by_net = simulate(world, Policy("run-now", "onnx", cap="onnx", bundle="b"), heads)
    assert same_figures(by_net, simulate(world, policy_named("run-now+weighted-cost")))


@FEW
@given(seed=seeds)
def test_the_prior_decides_as_the_rules_that_it_consists_of(seed: int) -> None:
    world = random_world(seed)
    learned = simulate(world, policy_named(f"{PRIOR}+run-now"))
    ruled = simulate(world, policy_named("run-now+weighted-cost"))
    # Costs are float32: candidates that are about as good may change places.
    same = np.mean(learned.node == ruled.node)
    assert same >= 0.9


@pytest.mark.parametrize("given", [None, GreenPolicy(mode=Mode.ENFORCE, longest_hold_s=3600.0)])
def test_starts_are_those_of_the_scenarios_green_policy_or_else_the_built_in_one(
    given: GreenPolicy | None,
) -> None:
    held = 0
    for seed in range(8):
        world = random_world(seed)._replace(green_policy=given)
        named = given or GreenPolicy(mode=Mode.ENFORCE, weights=world.weights)
        same = world._replace(
            green_policy=replace(named, when_policy="onnx"), when_net=shipped_net()
        )
        schedule = simulate(world, policy_named(f"{PRIOR}+weighted-cost+full-speed"))
        assert bytes_of(schedule) == bytes_of(simulate(same, policy_named("green-policy")))
        held += int((schedule.planned_s > world.jobs.arrival_s).sum())
    assert held > 10


def without(head: str, folder: Path) -> Path:
    """Return a copy of the shipped bundle that lacks a head."""
    bundle = Path(shutil.copytree(SHIPPED_PRIOR, folder / "bundle"))
    card: dict[str, Any] = json.loads((bundle / "card.json").read_text())
    del card["heads"][head]
    (bundle / "card.json").write_text(json.dumps(card))
    return bundle


@pytest.mark.parametrize(
    ("head", "rule"), [("when", "run-now"), ("where", "weighted-cost"), ("how_fast", "full-speed")]
)
def test_a_head_that_a_bundle_lacks_needs_a_rule(head: str, rule: str, tmp_path: Path) -> None:
    world, bundle = random_world(1), without(head, tmp_path)
    with pytest.raises(BadInput, match=rf"has no head `{head}`: .*onnx:{bundle}\+{rule}"):
        simulate(world, policy_named(f"onnx:{bundle}"))
    found = heads_of(world, policy_named(f"onnx:{bundle}+{rule}"))
    assert [net.sizes.size > 0 for net in found].count(True) == 2


def test_a_folder_without_a_bundle_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=str(tmp_path)):
        simulate(random_world(1), policy_named(f"onnx:{tmp_path}"))
