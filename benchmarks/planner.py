"""`python -m benchmarks.planner`: time of a replan of 10,000 held workloads on one core.

Prints workload, machine, median and spread, and what the carbon limit changes in the plan, and
writes build/bench/planner.json. It measures wall
time and CPU time of one process; other load affects CPU time less. The time includes building
workloads and outlook, but not parsing objects.
"""

import argparse
import gc
import os
import time
from collections import Counter
from statistics import median
from typing import Any

import numpy as np

from benchmarks.bench_cluster import machine
from benchmarks.command_line import parse, result_file, write_json
from greensched_policies.costs.cost import Floats, WorkloadColumns
from greensched_policies.encoding.observation import DecisionToMake
from greensched_policies.encoding.timing import (
    USUAL_ON_TIME_TARGET,
    USUAL_RUNTIME_ERROR,
    Timing,
)
from greensched_policies.encoding.weights import NOT_ABOVE_NOW, UNLIMITED, CarbonLimit, Weights
from greensched_policies.learned.bundle import load_bundle
from greensched_policies.learned.card import SHIPPED_PRIOR
from greensched_policies.learned.when_head import GuardedWhen
from greensched_policies.planning.core_plan import CorePlan
from greensched_policies.planning.outlook import Outlook, coming_day, outlook_of
from greensched_policies.planning.planning import Chosen, StartRequest, plan_all
from greensched_policies.rules.catalogue import WHEN_RULES
from greensched_simulator.formats.synthetic_grid import SHAPES, SYNTHETIC_SLOT_S, synthetic_slots

_SMALLEST = {"workloads": 20, "turns": 1}
HEAD = "onnx"
_DAY_S = 86_400.0
_SPEEDS = np.array([1.0, 0.8, 1.25])  # of the zones' nodes
_NODE_MEMORY = 64e9  # bytes
_WEIGHTS = Weights(0.5, 0.5, 0.0)
_WATTS_PER_CORE = 4.0
_STRICT = CarbonLimit(NOT_ABOVE_NOW)  # as in a GreenPolicy by default
_CAPACITY_FACTOR = 1.5  # capacity by the cores that all work would keep busy for a day
_BUDGET_S = 0.02


def main() -> None:
    """Time the rules named on the command line, by default two rules and the head."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", type=int, default=10_000)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--only", nargs="*", default=["run-now", "planned-window", HEAD])
    given = parse(parser, _SMALLEST)
    figures: dict[str, Any] = {"machine": machine(), "workloads": given.workloads}
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print(
        f"machine: {figures['machine']}, one core of it; {given.workloads:,} workloads of mean "
        f"1.3 h and 3 cores, slack up to a day, {len(SHAPES)} synthetic zones, quarter hours, "
        f"cores for {_CAPACITY_FACTOR} times the work"
    )
    world = _world(given.workloads)
    for name in given.only:
        figures |= _timed(name, world, given.turns)
    for title, name, limit in (
        ("run-now", "run-now", UNLIMITED),
        ("planned-window, carbonLimit none", "planned-window", UNLIMITED),
        ("planned-window, not-above-now", "planned-window", _STRICT),
        ("clean-threshold", "clean-threshold", UNLIMITED),
    ):
        figures[title] = _trade(title, _replan(name, world, limit))
    write_json(result_file("planner", given), figures)


World = tuple[Floats, Floats, Floats]  # cores, reference runtimes and slack in seconds


def _world(count: int) -> World:
    dice = np.random.default_rng(1)
    cores = dice.choice([0.5, 1.0, 2.0, 4.0, 8.0], count)
    runtime_s = np.exp(dice.normal(8.0, 1.0, count)).clip(60.0, 43_200.0)
    return cores, runtime_s, dice.uniform(0.0, _DAY_S, count)


def _timed(name: str, world: World, turns: int) -> dict[str, Any]:
    took_s, cpu_s, found = [], [], []
    for _ in range(turns + 1):
        gc.collect()
        began, cpu_began_s = time.perf_counter(), time.process_time()
        found = _replan(name, world)
        took_s.append(time.perf_counter() - began)
        cpu_s.append(time.process_time() - cpu_began_s)
    timed, cpu_s = took_s[1:], cpu_s[1:]  # the first turn warms up
    counts = Counter(chosen.why.value for chosen in found).most_common()
    why = ", ".join(f"{count:,} {reason}" for reason, count in counts)
    print(
        f"{name}: {median(timed):.2f} s a replan ({min(timed):.2f} – {max(timed):.2f}; {turns} "
        f"turns), {median(cpu_s):.2f} s of CPU; {why}"
    )
    return {
        f"replan_s_{name}": median(timed),
        f"replan_s_{name}_turns": timed,
        f"replan_cpu_s_{name}": median(cpu_s),
    }


def _trade(name: str, found: list[Chosen]) -> dict[str, float]:
    """Return and print how much carbon the plan of all work costs, and who waits for more."""
    held = [each for each in found if each.start_s > 0.0]
    pairs = [(each.run.carbon_g, each.run_now.carbon_g) for each in held]
    grams = np.array(pairs, float).reshape(-1, 2)
    figures = {
        "held": len(held),
        "dirtier_pct": 100.0 * float((grams[:, 0] > 1.001 * grams[:, 1]).sum()) / max(len(held), 1),
        "carbon_kg": sum(each.run.carbon_g or 0.0 for each in found) / 1e3,
        "cost": sum(each.run.cost or 0.0 for each in found),
    }
    print(
        f"{name}: {figures['held']:,} wait, {figures['dirtier_pct']:.1f} % of them for a dirtier "
        f"hour; all work emits {figures['carbon_kg']:.1f} kg and costs {figures['cost']:.2f}"
    )
    return figures


def _replan(name: str, world: World, limit: CarbonLimit = _STRICT) -> list[Chosen]:
    cores, runtime_s, slack_s = world
    outlook = _outlook()
    plan = CorePlan(np.full(len(SHAPES), _capacity(world)), 0.0, SYNTHETIC_SLOT_S, outlook.slots)
    head = None
    if name == HEAD:
        head = GuardedWhen(
            HEAD, _MODEL, ("planned-window", WHEN_RULES["planned-window"]),
            budget_s=_BUDGET_S, monotonic=time.perf_counter, count=lambda reason: None,
        )  # fmt: skip
    asked, day = [], coming_day(outlook, 0.0)
    for each_cores, each_s, each_slack_s in zip(
        cores.tolist(), runtime_s.tolist(), slack_s.tolist(), strict=True
    ):
        if head is None:
            when = WHEN_RULES[name]
        else:
            when = head.policy(_to_make(each_cores, each_s, each_slack_s), day)
        power_w = np.full(len(SHAPES), each_cores * _WATTS_PER_CORE)
        asked.append(
            StartRequest(each_s / _SPEEDS, each_slack_s, each_cores, power_w, _WEIGHTS, when, limit)
        )
    return plan_all(outlook, plan, asked, 0.0)


def _to_make(cores: float, runtime_s: float, slack_s: float) -> DecisionToMake:
    asks: tuple[Any, ...] = (cores, 4e9, 0.0, runtime_s)
    memory: Any = _NODE_MEMORY
    return DecisionToMake(
        WorkloadColumns(*asks), _WEIGHTS, memory,
        Timing(0.0, slack_s + runtime_s, USUAL_RUNTIME_ERROR, USUAL_ON_TIME_TARGET),
    )  # fmt: skip


def _capacity(world: World) -> float:
    cores, runtime_s, _ = world
    return _CAPACITY_FACTOR * float(cores @ runtime_s) / _DAY_S / len(SHAPES)


def _outlook() -> Outlook:
    zones = [synthetic_slots(shape, seed=1, span_s=2 * _DAY_S) for shape in SHAPES.values()]
    carbon, price = (
        np.array([[getattr(slot, field) for slot in zone] for zone in zones])
        for field in ("carbon_g_per_kwh", "price_per_mwh")
    )
    return outlook_of(
        0.0, SYNTHETIC_SLOT_S, carbon, price, np.full(len(zones), int(_DAY_S // SYNTHETIC_SLOT_S))
    )


_MODEL = load_bundle(SHIPPED_PRIOR).when

if __name__ == "__main__":
    main()
