"""`make bench-parity`: the same day on a real control plane and in the simulator, compared.

A day of Jobs, pods, gangs and CronJob runs with GPUs on real grids of 2023, in three zones on
three kinds of machines, with errors of forecasts and estimates; then the same day with exact
forecasts. Extender, second scheduler and operator run on the cluster. Energy is reckoned from the
starts, ends and nodes that watches saw, by the bill's function. Then other seeds of the day, in the
simulator alone. Writes build/bench/parity.json.
"""

import argparse
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bench_cluster import machine
from benchmarks.command_line import ROOT, parse, result_file, write_json
from benchmarks.parity_day import PlayedDay, day_content, played, scenario_of
from benchmarks.parity_seeds import on_other_seeds
from greensched_core.errors import BadInput
from greensched_policies.billing.accounting import Bill
from greensched_policies.costs.cost import Floats
from greensched_policies.planning.outlook import SLOT_S
from greensched_simulator.testing.operator_beside import ROUNDING_S, decided_by_operator
from greensched_simulator.world.world import World, build_world
from greensched_testbed.held_day.day import Day, ItemRun
from greensched_testbed.held_day.watched_runs import node_row, placements_of

POLICY = Path(__file__).with_name("parity-policy.yaml")
DAYS, SEEDS = ("errors", "exact"), "seeds"
_ROUNDING = 1e-9  # of grams, as a share
_SMALLEST = {"jobs": 12, "rate": 1440.0, "seeds": 2}


def main() -> None:
    """Play the days named on the command line, and other seeds of them; write the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=144.0, help="speed of the replayed days")
    parser.add_argument("--seeds", type=int, default=10, help="of the days in the simulator alone")
    parts = (*DAYS, SEEDS)
    parser.add_argument("--only", nargs="*", default=list(parts), choices=parts, metavar="PART")
    given = parse(parser, _SMALLEST)
    os.environ.setdefault("GREENSCHED_DATA", str(ROOT.parent / "shared" / "data"))
    figures: dict[str, Any] = {"machine": machine()}
    print(f"machine: {figures['machine']}")
    for name in (each for each in given.only if each in DAYS):
        content = day_content(given.jobs, has_exact_forecasts=name == "exact")
        scenario = scenario_of(content)
        done = played(scenario, build_world(scenario), POLICY, given.rate, _say)
        suffix = "" if name == "errors" else "_exact"
        figures |= {f"{key}{suffix}": value for key, value in compared(done).items()}
        for line in late_starts(done):
            _say(line)
        figures[f"core_hours{suffix}"] = core_hours(done)
        for group, (on_cluster, simulated) in figures[f"core_hours{suffix}"].items():
            _say(f"{group}: {on_cluster:.0f} core hours on the cluster, {simulated:.0f} simulated")
        if name == "exact":
            figures |= dirtier(done.day, done.runs) | dirtier_simulated(done) | same_plans(done)
    if SEEDS in given.only:
        figures |= on_other_seeds(given.jobs, given.seeds, _say)
    for name, value in figures.items():
        if isinstance(value, float | int):
            print(f"{name}: {value:.4g}")
    write_json(result_file("parity", given), figures)


def compared(done: PlayedDay) -> dict[str, float]:
    """Return how far cluster and simulator are apart, and what was late or lost."""
    figures: dict[str, float] = {}
    for name, of in (("carbon", _active_g), ("energy", _active_j)):
        on_cluster, simulated, run_now = (
            of(bill) for bill in (done.bill, done.simulated_bill, done.run_now_bill)
        )
        saved = 100.0 * (on_cluster / run_now - 1.0)
        saved_simulated = 100.0 * (simulated / run_now - 1.0)
        off = 100.0 * abs(on_cluster / simulated - 1.0)
        figures[f"{name}_vs_run_now_pct"] = saved
        figures[f"{name}_vs_run_now_simulated_pct"] = saved_simulated
        figures[f"parity_{name}_pct"] = max(off, abs(saved - saved_simulated))
    runs, rate = done.runs, done.day.pace.rate
    return figures | {
        "jobs": len(runs),
        "held_jobs": sum(1 for _ in _held(done.day, runs)),
        "held_jobs_simulated": int(_waits(done).sum()),
        "equal_starts_pct": 100.0 * float(np.mean(_are_equal(done))),
        "late_starts": sum(_starts_late(run, rate) for run in runs),
        "late_jobs": sum(
            bool(_or_never(run.ended_s) > done.day.world.jobs.deadline_s[run.place] + rate)
            for run in runs
        ),
        "lost_jobs": sum(run.ended_s is None for run in runs),
    }


def late_starts(done: PlayedDay) -> Iterator[str]:
    """Yield a line about each job that started after its latest start."""
    jobs = done.day.world.jobs
    for run in done.runs:
        if _starts_late(run, done.day.pace.rate):
            yield (
                f"job {run.place}, {run.workers} pods of {jobs.cpu_cores[run.place]:g} cores and "
                f"{jobs.gpus[run.place]:g} GPUs, started late; seconds of the day: planned for "
                f"{run.planned_s}, latest start {run.latest_s}, released {run.released_s}, "
                f"started {run.started_s}"
            )


def core_hours(done: PlayedDay) -> dict[str, tuple[float, float]]:
    """Return for each group of nodes the core hours run there, on the cluster and simulated."""
    names, world = done.day.world.node_names, done.day.world
    segments = done.simulated.run_segments
    both = (
        placements_of(done.day, done.runs)[:4],
        (segments.node, segments.start_s, segments.end_s, world.jobs.cpu_cores[segments.job]),
    )
    found: dict[str, list[float]] = {}
    for side, (node, start_s, end_s, cores) in enumerate(both):
        for row, hours in zip(node, cores * (end_s - start_s) / 3600.0, strict=True):
            group = names[row].rpartition("-")[0]
            found.setdefault(group, [0.0, 0.0])[side] += float(hours)
    return {group: (hours[0], hours[1]) for group, hours in sorted(found.items())}


def dirtier(day: Day, runs: Sequence[ItemRun]) -> dict[str, float]:
    """Return the share of held runs that emitted more than at arrival on the same nodes.

    These may have had no room then. So the share whose power was dirtier than on arrival by the
    first plan, which looks for room in every zone, is told too.
    """
    world, changes, by_plan = day.world, list[float](), list[float]()
    for run in _held(day, runs):
        spans = [
            (int(world.nodes.zone[node_row(day, pod.node)]), pod.started_s, pod.ended_s)
            for pod in run.pods.values()
            if pod.ended_s is not None
        ]
        if spans and run.created_s is not None:  # it ran
            grams, at_arrival_g = _grams(world, spans, run.created_s)
            hours = sum(end_s - start_s for _, start_s, end_s in spans) / 3600.0
            told = run.arrival_g_per_kwh
            changes.append(_change(grams, at_arrival_g))
            by_plan.append(np.nan if told is None else _change(grams / hours, told))
    if unknown := np.isnan([*changes, *by_plan]).sum():
        raise BadInput(f"carbon is not known for {unknown} runs of the day")
    return {
        "held_dirtier_pct": _share_above(changes),
        "held_dirtiest_pct": 100.0 * max(changes, default=0.0),
        "held_dirtier_than_first_planned_pct": _share_above(by_plan),
        "held_dirtiest_than_first_planned_pct": 100.0 * max(by_plan, default=0.0),
    }


def dirtier_simulated(done: PlayedDay) -> dict[str, float]:
    """Return the share of held jobs that emitted more than at arrival, in the simulator."""
    world, segments = done.day.world, done.simulated.run_segments
    spans: dict[int, list[tuple[int, float, float]]] = {}
    for job, node, start_s, end_s in zip(
        segments.job, segments.node, segments.start_s, segments.end_s, strict=True
    ):
        spans.setdefault(int(job), []).append((int(world.nodes.zone[node]), start_s, end_s))
    held = [int(job) for job in np.flatnonzero(_waits(done)) if int(job) in spans]
    both = [_grams(world, spans[job], float(world.jobs.arrival_s[job])) for job in held]
    return {"held_dirtier_simulated_pct": _share_above([_change(*each) for each in both])}


def _grams(
    world: World, spans: Sequence[tuple[int, float, float]], arrived_s: float
) -> tuple[float, float]:
    """Return what a kilowatt emits from start to end in a zone, and from the arrival on."""
    whole = [
        (
            grams_of_kilowatt(world, zone, start_s, end_s - start_s),
            grams_of_kilowatt(world, zone, arrived_s, end_s - start_s),
        )
        for zone, start_s, end_s in spans
    ]
    return sum(grams for grams, _ in whole), sum(grams for _, grams in whole)


def _change(grams: float, at_arrival_g: float) -> float:
    """Return by which share more is emitted; infinity where it had been nothing."""
    if at_arrival_g == 0.0:
        return np.inf if grams > 0.0 else 0.0
    return grams / at_arrival_g - 1.0


def _share_above(changes: list[float]) -> float:
    return 100.0 * float(np.mean(np.array(changes) > _ROUNDING)) if changes else 0.0


def same_plans(done: PlayedDay) -> dict[str, float]:
    """Return the share of jobs that simulator and operator release at the same moment.

    The operator's functions see what runs in the simulated day, with the same forecasts.
    """
    world = done.day.world
    assert world.green_policy is not None
    beside = decided_by_operator(world, world.green_policy, done.simulated)
    starts_s = [beside.starts_s[job] for job in range(world.jobs.arrival_s.size)]
    are_same = np.isclose(np.array(starts_s), done.simulated.planned_s, rtol=0.0, atol=ROUNDING_S)
    return {"same_plans_pct": 100.0 * float(are_same.mean())}


def grams_of_kilowatt(world: World, zone: int, start_s: float, length_s: float) -> float:
    """Return the grams that a kilowatt emits in a zone; NaN where its carbon is not known."""
    own = slice(*world.grids.starts[zone : zone + 2])
    times_s, carbon = world.grids.times_s[own], world.grids.carbon_g_per_kwh[own]
    widths_s = np.diff(np.clip(np.append(times_s, np.inf), start_s, start_s + length_s))
    runs = widths_s > 0.0  # the series ends with a step without data
    return float(np.sum(widths_s[runs] * carbon[runs])) / 3600.0


def _held(day: Day, runs: Sequence[ItemRun]) -> Iterator[ItemRun]:
    """Yield the jobs that were released at a planned start, later than on arrival."""
    for run in runs:
        if run.planned_s is not None and run.created_s is not None:
            if run.released_s is not None and run.planned_s > run.created_s + day.pace.rate:
                yield run


def _waits(done: PlayedDay) -> np.typing.NDArray[np.bool_]:
    waits: np.typing.NDArray[np.bool_] = (
        done.simulated.planned_s > done.day.world.jobs.arrival_s + done.day.pace.rate
    )
    return waits


def _are_equal(done: PlayedDay) -> list[bool]:
    """Return for each job whether both released it within the same quarter of an hour."""
    released_s = [np.inf if run.released_s is None else run.released_s for run in done.runs]
    starts_s = [
        (run.created_s or 0.0) if at_s == np.inf else at_s
        for run, at_s in zip(done.runs, released_s, strict=True)
    ]
    planned_s: Floats = done.simulated.planned_s
    return [
        bool(abs(one_s - other_s) < SLOT_S)
        for one_s, other_s in zip(starts_s, planned_s, strict=True)
    ]


def _starts_late(run: ItemRun, rate: float) -> bool:
    return run.latest_s is not None and _or_never(run.started_s) > run.latest_s + rate


def _or_never(at_s: float | None) -> float:
    return np.inf if at_s is None else at_s


def _active_g(bill: Bill) -> float:
    return float(bill.carbon_active_g.sum())


def _active_j(bill: Bill) -> float:
    return float(bill.energy_active_j.sum())


def _say(line: str) -> None:
    print(f"  {line}", flush=True)


if __name__ == "__main__":
    main()
