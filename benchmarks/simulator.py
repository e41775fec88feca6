"""`make bench-simulator`: speed and memory of the simulator.

Prints workload, machine, median and spread, and writes build/bench/simulator.json. It reads the
trace and the grids from $GREENSCHED_DATA (docs/scenarios.md says where they come from).
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks import environments
from benchmarks.bench_cluster import machine
from benchmarks.command_line import ROOT, parse, result_file, write_json
from benchmarks.second_core import second_core_ratio
from greensched_operator.objects.green_policy import GreenPolicy, Mode
from greensched_policies.learned.card import SHIPPED_PRIOR
from greensched_simulator.formats.traces import load_trace
from greensched_simulator.phase_jobs.phases import Phase, PhasedJob
from greensched_simulator.phase_jobs.plan import cheapest_plan
from greensched_simulator.policy import Policy, policy_named
from greensched_simulator.reproductions import gaia
from greensched_simulator.results.bound_report import bounded
from greensched_simulator.runs.outcome import Outcome, outcome_of
from greensched_simulator.runs.simulation import bill_of, billed_until_s, simulate, simulate_each
from greensched_simulator.scenario.model import Scenario
from greensched_simulator.world.scenario_loading import parse_scenario
from greensched_simulator.world.world import World, build_world

DATA = Path(os.environ.get("GREENSCHED_DATA") or ROOT.parent / "shared" / "data")
ZONES = ("DE-LU", "US-CAL-CISO", "GB", "AU-NSW")
TRACE = "gaia-cluster-traces/pai-70k.csv.gz"
POLICY = "carbon-time+weighted-cost"
DEFAULT = "green-policy+weighted-cost"  # as a cluster decides
LEARNED = f"onnx:{SHIPPED_PRIOR}"
DEFAULT_NODES = 100
SHIFTS = ("lowest-slot", "lowest-window", "carbon-time")
BOUNDED = ("run-now+spread", "planned-window+weighted-cost", "cheapest-window+weighted-cost")
LOAD = 0.7
_CORES = os.cpu_count() or 1  # policies that run at a time, as in `compare`
_TRACE_JOBS = 70_000
_PLAN_FROM = 17_520  # the first hour of 2023
_PLAN_SLOTS = 5_000
# nodes, jobs, turns
SIZES = ((100, 140_000, 5), (300, 140_000, 3), (1_000, 140_000, 5), (10_000, 1_000_000, 1))
_FULL = {
    "sizes": SIZES, "turns": 7, "bounded_jobs": 1_000, "planned_slots": 800,
    "effort": environments.FULL, "compiles": True,
}  # fmt: skip
_SMALLEST = {
    "sizes": ((100, 1_000, 1),), "turns": 1, "bounded_jobs": 20, "planned_slots": 20,
    "effort": environments.SMALLEST, "compiles": False,
}  # fmt: skip


def main() -> None:
    """Run the sizes named on the command line, all by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="*", help="only these sizes")
    parser.add_argument("--environments", action="store_true", help="only the environments")
    parser.add_argument("--one", type=int, nargs=3, metavar=("NODES", "JOBS", "TURNS"),
                        help=argparse.SUPPRESS)  # fmt: skip
    parser.set_defaults(**_FULL)
    given = parse(parser, _SMALLEST)
    if given.one:
        print(json.dumps(_run(*given.one)))
        return
    figures: dict[str, Any] = {"machine": machine(), "policy": POLICY, "load": LOAD}
    print(f"machine: {figures['machine']}; PAI trace on {', '.join(ZONES)}; {POLICY}")
    if given.compiles and not given.environments:
        figures |= _compilation()
    figures |= _second_core("before", given.turns)
    if not given.environments:
        figures |= _parts(given)
    figures |= environments.environment_figures(_world, POLICY, given.effort)
    figures |= _second_core("after", given.turns)
    write_json(result_file("simulator", given), figures)


def _compilation() -> dict[str, Any]:
    """Time the first run of all, which compiles the engine."""
    with tempfile.TemporaryDirectory() as cache:
        cold = _in_process((100, 1_000, 1), {"XDG_CACHE_HOME": cache})
    print(f"first run, with compilation: {cold['first_s']:.1f} s")
    return {"compile_s": cold["first_s"]}


def _parts(given: argparse.Namespace) -> dict[str, Any]:
    """Measure all but compilation and the environments."""
    figures: dict[str, Any] = {}
    for size in given.sizes:
        if not given.nodes or size[0] in given.nodes:
            figures |= _report(size, _in_process(size, {}))
    figures |= _second_core("between", given.turns) | _shifts(given.turns)
    return figures | _bound(given.bounded_jobs) | _phase_plans(given.planned_slots, given.turns)


def _second_core(when: str, turns: int) -> dict[str, Any]:
    """Report what the second core adds now, since other load may share the machine."""
    ratio = second_core_ratio(turns)
    print(f"two threads do {ratio:.2f} times the arithmetic of one ({when})")
    return {f"second_core_ratio_{when}": ratio}


def _shifts(turns: int) -> dict[str, Any]:
    """Time the analytic rules on the whole trace, each job alone, on Germany's grid."""
    tasks = load_trace(DATA / TRACE, {"time_unit": "h"}).tasks
    jobs = gaia.GaiaJobs(
        np.array([int(task.arrival_s // gaia.TICK_S) for task in tasks]),
        np.array([int(task.runtime_s // gaia.TICK_S) for task in tasks]),
        np.array([task.cpu_cores for task in tasks]),
    )
    carbon = gaia.Carbon(gaia.read_column(DATA, "DE-LU"))
    rates = []
    for _ in range(turns):
        began = time.perf_counter()
        for name in SHIFTS:
            gaia.shift(name, jobs, carbon)
        rates.append(len(SHIFTS) * len(tasks) / (time.perf_counter() - began))
    print(
        f"{', '.join(SHIFTS)}, {len(tasks):,} jobs each: {median(rates):,.0f} decisions/s "
        f"({min(rates):,.0f} – {max(rates):,.0f}; {turns} turns)"
    )
    return {"shift_decisions_per_s": median(rates), "shift_decisions_per_s_turns": rates}


def _bound(jobs: int) -> dict[str, Any]:
    """Time the bounds of energy, carbon and cost of `jobs` jobs over a week in four zones."""
    world = build_world(_bounded_scenario(jobs))
    policies = [policy_named(name) for name in BOUNDED]
    for policy in policies:
        simulate(world, policy)  # compile and load first
    began = time.perf_counter()
    found = bounded(world, policies, slot_s=3600.0)
    seconds = time.perf_counter() - began
    figures: dict[str, Any] = {f"bound_s_{jobs}_jobs": seconds}
    print(f"bounds of {world.jobs.arrival_s.size:,} jobs, 7 days, 4 zones: {seconds:.1f} s")
    for figure in found.figures:
        best = min(figure.runs, key=lambda run: run.total)
        figures[f"bound_gap_{figure.name}_pct"] = best.gap_pct
        print(
            f"  {figure.name}: at least {figure.bound:,.1f} {figure.unit}; {best.policy} takes "
            f"{best.gap_pct:.2f} % more, {best.captured_pct or 0.0:.0f} % of what {BOUNDED[0]} "
            "could save is saved"
        )
    return figures


def _phase_plans(planned_slots: int, turns: int) -> dict[str, Any]:
    """Time the plan of a job of `planned_slots` hours within 5,000, with a checkpoint each hour.

    Its phases take an hour each, or each a different length. With different lengths hardly any two
    suspended runs are at the same place when a slot begins.
    """
    boot, half = Phase("boot", 3600.0, 100.0), planned_slots // 2
    whole = [3600.0] * (planned_slots - 1)
    odd = [3600.0 + 1.2345 * place for place in range(1 - half, half)]  # the same total
    figures: dict[str, Any] = {}
    for name, lengths_s in (("", whole), ("odd_", odd)):
        work = [
            Phase("work", length_s, 150.0 + 50.0 * (place % 4), is_checkpoint=True)
            for place, length_s in enumerate(lengths_s)
        ]
        job = PhasedJob((boot,), tuple(work))
        figures |= _phase_plan(f"phase_plan_{name}s_5000_slots", job, turns)
    return figures


def _phase_plan(name: str, job: PhasedJob, turns: int) -> dict[str, Any]:
    carbon = gaia.read_column(DATA, "DE-LU")[_PLAN_FROM : _PLAN_FROM + _PLAN_SLOTS]
    slots = 1 + len(job.work)
    at_once = cheapest_plan(job, 3600.0, carbon, deadline_slot=slots)  # also compiles
    seconds = []
    for _ in range(turns):
        began = time.perf_counter()
        plan = cheapest_plan(job, 3600.0, carbon)
        seconds.append(time.perf_counter() - began)
    print(
        f"plan of {slots} in {_PLAN_SLOTS:,} slots, {len(job.work)} checkpoints ({name}): "
        f"{median(seconds):.3f} s ({min(seconds):.3f} – {max(seconds):.3f}; {turns} turns); "
        f"{plan.cost:,.0f} g in {len(plan.run_segments)} run segments, {at_once.cost:,.0f} g at "
        f"once"
    )
    return {name: median(seconds), f"{name}_turns": seconds}


def _in_process(size: tuple[int, int, int], variables: dict[str, str]) -> dict[str, Any]:
    """Run one size in a separate process, to measure its own memory peak."""
    command = [sys.executable, "-m", "benchmarks.simulator", "--one", *map(str, size)]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **variables}, cwd=ROOT
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _report(size: tuple[int, int, int], found: dict[str, Any]) -> dict[str, Any]:
    nodes, jobs, turns = size
    print(
        f"{nodes:6} nodes, {jobs:9,} jobs, {turns} turns: peak {found['rss_mib']:.0f} MiB; "
        f"{found['met_pct']:.1f} % of deadlines met, {found['busy_pct']:.0f} % busy, "
        f"{found['billed_days']:.1f} days"
    )
    figures = {}
    named = [(_CORES, "", POLICY), (1, "_one_core", POLICY)]
    if "turns_default_s" in found:
        named += [(_CORES, "_default", DEFAULT), (_CORES, "_learned", "the shipped bundle")]
    for runs, name, policy in named:
        rates = [runs * jobs / seconds for seconds in found[f"turns{name}_s"]]
        print(
            f"       {policy}, {runs} runs at a time: {median(rates):9,.0f} jobs/s "
            f"({min(rates):,.0f} – {max(rates):,.0f})"
        )
        figures[f"jobs_per_s_{nodes}{name}"] = median(rates)
        figures[f"jobs_per_s_{nodes}{name}_turns"] = rates
    if jobs == 1_000_000:
        figures["rss_mib_1m_jobs"] = found["rss_mib"]
    return figures


def _run(nodes: int, jobs: int, turns: int) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    world, policy = _world(nodes, jobs), policy_named(POLICY)
    began = time.perf_counter()
    columns = type(world.jobs)._make(column[:100] for column in world.jobs)
    simulate(world._replace(jobs=columns), policy)
    first_s = time.perf_counter() - began
    outcome, turns_s = _timed(world, policy, 1, turns)
    rss_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    _, turns_of_all_s = _timed(world, policy, _CORES, turns)
    cores_s = world.nodes.cpu_capacity.sum() * world.jobs.arrival_s[-1]
    held = {}
    if nodes == DEFAULT_NODES:
        held = {
            "turns_default_s": _timed_held(world, DEFAULT, turns),
            "turns_learned_s": _timed_held(world, LEARNED, turns),
        }
    return held | {
        "first_s": first_s,
        "turns_one_core_s": turns_s,
        "turns_s": turns_of_all_s,
        "rss_mib": rss_mib,
        "met_pct": 100.0 * outcome.deadlines_met / outcome.deadlines,
        "busy_pct": 100.0 * float(world.jobs.cpu_cores @ world.jobs.runtime_s) / cores_s,
        "billed_days": outcome.billed_s / 86_400.0,
    }


def _timed(world: World, policy: Policy, runs: int, turns: int) -> tuple[Outcome, list[float]]:
    """Return one run's outcome, and the seconds per turn of `runs` concurrent billed runs."""
    turns_s = []
    for _ in range(turns):
        began = time.perf_counter()
        done = simulate_each(world, (policy,) * runs, lambda policy, seed: None)
        schedules = [each.schedule for each in done]
        until_s = billed_until_s(world, *schedules)
        outcomes = [
            outcome_of(world, each, bill_of(world, each, until_s), until_s) for each in schedules
        ]
        turns_s.append(time.perf_counter() - began)
    return outcomes[0], turns_s


def _timed_held(world: World, name: str, turns: int) -> list[float]:
    """Return the seconds per turn of a policy that decides as a cluster does, compiled first."""
    policy = policy_named(name)
    world = world._replace(green_policy=GreenPolicy(mode=Mode.ENFORCE))
    columns = type(world.jobs)._make(column[:100] for column in world.jobs)
    simulate(world._replace(jobs=columns), policy)
    return _timed(world, policy, _CORES, turns)[1]


def _bounded_scenario(jobs: int) -> Scenario:
    """Return `jobs` synthetic jobs in a week on 20 nodes of two generations in four real grids."""
    groups = [
        _group(zone, 5) | {"hardware": hardware}
        for zone, hardware in zip(ZONES, ("epyc-7763-1s", "xeon-e5-2699v4-2s") * 2, strict=True)
    ]
    for group in groups:
        del group["speed"]
    return parse_scenario(
        {
            "name": "bench-bound",
            "start": "2023-06-05T00:00:00Z",
            "length": "7d",
            "cluster": {"nodes": groups},
            "grids": {zone: _grid(zone) for zone in ZONES},
            "workload": {"generator": {"jobs": jobs, "runtime_median": "90m"}, "slack": "12h"},
        }
    )


def _world(nodes: int, jobs: int) -> World:
    """Return the trace, repeated as needed and scaled to the load, on equal nodes in four zones."""
    scenario = parse_scenario(
        {
            "name": f"bench-{nodes}",
            "start": "2021-01-01T00:00:00Z",
            "length": "900d",
            "cluster": {"nodes": [_group(zone, nodes // len(ZONES)) for zone in ZONES]},
            "grids": {zone: _grid(zone) for zone in ZONES},
            "workload": {
                "trace": {"file": str(DATA / TRACE), "repeat": jobs // _TRACE_JOBS + 1},
                "load": LOAD,
                "skip_unplaceable": True,
                "slack": [{"shorter_than": "2h", "may_wait": "6h"}, {"may_wait": "24h"}],
            },
        }
    )
    world = build_world(scenario)
    kept = type(world.jobs)._make(column[:jobs] for column in world.jobs)
    if kept.arrival_s.size < jobs:
        raise SystemExit(f"only {kept.arrival_s.size} of {jobs} jobs could be created")
    return world._replace(jobs=kept, length_s=float(kept.arrival_s[-1]))


def _group(zone: str, count: int) -> dict[str, Any]:
    return {
        "name": zone.lower(), "count": count, "hardware": "epyc-7763-1s", "cpu_cores": 64,
        "memory": "256Gi", "zone": zone, "speed": 1.0,
    }  # fmt: skip


def _grid(zone: str) -> dict[str, Any]:
    file = DATA / "sustain-cluster-carbon" / f"{zone}_2021-2023_hourly.csv.gz"
    return {
        "carbon": {
            "file": str(file), "time_column": "datetime_utc", "column": "ci_lca_g_per_kwh",
        },
        "price": {"constant": 80, "unit": "EUR/MWh"},
        "forecast_error": 0.1,
    }  # fmt: skip


if __name__ == "__main__":
    main()
