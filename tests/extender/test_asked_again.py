"""A pod that waited is asked for again: its own load, counted already, is not held against it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from greensched_core.power.curves import PowerCurve
from greensched_core.testing import make_node

World = Any
MakePod = Callable[..., dict[str, Any]]

# Frugal to half its load, then far above the other.
STEEP = PowerCurve((100.0,) * 6 + (300.0, 500.0, 700.0, 900.0, 1100.0))


def test_a_node_stays_the_best_one_although_the_pod_is_counted_there_already(
    world: World, pod: MakePod
) -> None:
    world.add(replace(make_node("steep", cpu_cores=10.0), curve=STEEP))
    world.add(make_node("even", cpu_cores=10.0, idle_w=100.0, peak_w=400.0))
    half = pod("p", cpu="8")  # 40 % of the node's CPUs at half use
    assert world.scores("steep", "even", pod=half) == {"steep": 10, "even": 0}
    assert world.snapshot.report("steep").provisional == 1
    assert world.scores("steep", "even", pod=half) == {"steep": 10, "even": 0}
    assert world.scores("steep", "even", pod=pod("q", cpu="8")) == {"steep": 0, "even": 10}


def test_a_pod_passes_the_power_budget_that_it_fills_itself(world: World, pod: MakePod) -> None:
    machine = make_node("a", cpu_cores=10.0, idle_w=100.0, peak_w=400.0)
    world.add(replace(machine, power_budget_w=machine.curve.at(0.45)))
    filling = pod("p", cpu="8")  # 40 % of the node's CPUs at half use
    assert world.filtered("a", pod=filling)["NodeNames"] == ["a"]
    assert world.snapshot.report("a").provisional == 1
    assert world.filtered("a", pod=filling)["NodeNames"] == ["a"]
    assert world.filtered("a", pod=pod("q", cpu="8"))["NodeNames"] == []


def test_the_nodes_offered_are_counted_with_those_nobody_knows(world: World) -> None:
    world.add(make_node("a"), make_node("b"))
    world.scores("a", "b", "ghost")
    world.scores("a")
    assert world.counted("candidates_count") == 2
    assert world.counted("candidates_sum") == 4
