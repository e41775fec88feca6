"""Other seeds of the parity day, and larger clusters, in the simulator with exact forecasts.

One day says little about what waiting saves. Here its mean does, with its standard error, and how
well plans come true. And the same day is told again with nodes that are not quite as good as they
were: how far apart days are that a scheduler cannot tell from each other.
"""

from collections.abc import Callable

import numpy as np

from benchmarks.parity_day import HELD, RUN_NOW, day_content, scenario_of
from greensched_core.units import JOULES_PER_KWH
from greensched_policies.billing.accounting import bill_placements
from greensched_policies.costs.cost import Floats
from greensched_policies.library.scores import NOISE
from greensched_simulator.policy import policy_named
from greensched_simulator.runs.busy_nodes import merit_orders
from greensched_simulator.runs.replica_use import billed_placements
from greensched_simulator.runs.run_inputs import cost_model
from greensched_simulator.runs.simulation import (
    bill_of,
    billed_nodes_of,
    billed_until_s,
    simulate,
    zone_series,
)
from greensched_simulator.testing.operator_beside import decided_by_operator
from greensched_simulator.world.world import World, build_world

SIZES = (1, 2, 5)  # times the nodes of the day
_TIE = 0.5 * NOISE  # nodes whose costs are off by this share of each other score the same
NO_GPU_JOBS = "_no_gpu_jobs"  # the end of figures of the day without them


def on_other_seeds(jobs: int, seeds: int, say: Callable[[str], None]) -> dict[str, float]:
    """Return and tell what waiting saves, and how well plans come true."""
    figures: dict[str, float] = {}
    for size in SIZES:
        for suffix in ("", NO_GPU_JOBS):
            worlds = [day_world(jobs, seed, size, suffix) for seed in range(1, seeds + 1)]
            changes = 100.0 * np.array([_changes(world) for world in worlds])
            mean, error = changes.mean(axis=0), changes.std(axis=0, ddof=1) / np.sqrt(seeds)
            for name, each, its_error in zip(("carbon", "cost"), mean, error, strict=True):
                key = f"seeds_{name}_vs_run_now_pct_{size}x{suffix}"
                figures |= {key: float(each), f"{key}_error": float(its_error)}
    say(f"a core's energy to the mean: {merit_words(day_world(jobs, 1))}")
    kept = [plans_kept(day_world(jobs, seed, has_exact_estimates=True)) for seed in (1, 2, 3)]
    means = {f"seeds_{name}": float(np.mean([each[name] for each in kept])) for name in kept[0]}
    return figures | means | _on_ties(jobs, 3 * seeds, say)


def _on_ties(jobs: int, days: int, say: Callable[[str], None]) -> dict[str, float]:
    """Return how far apart the simulator's days are whose nodes differ by less than scores tell.

    Each node's PUE is off by at most half of what makes a difference in scores, at random, while
    work is placed; the bills are by the PUE as it is. kube-scheduler picks at random among nodes of
    equal score, so a cluster's day is one of these.
    """
    figures: dict[str, float] = {}
    cases = (
        ("errors", False, 1, ""), ("exact", True, 1, ""), ("exact_5x", True, 5, ""),
        (f"exact_5x{NO_GPU_JOBS}", True, 5, NO_GPU_JOBS),
    )  # fmt: skip
    for name, is_exact, size, suffix in cases:
        world = day_world(jobs, 1, size, suffix, has_exact_forecasts=is_exact)
        ways = [_with_ties_broken(world, seed) for seed in range(1, days + 1)]
        found = np.array([100.0 * _changes(world, placed_by=way)[0] for way in ways])
        mean, spread = float(found.mean()), float(found.std(ddof=1))
        least, most = float(found.min()), float(found.max())
        say(f"{name}, {days} ways to break ties: {mean:+.1f} % carbon, "
            f"standard deviation {spread:.1f}, {least:+.1f} to {most:+.1f} %")  # fmt: skip
        figures |= {
            f"ties_carbon_vs_run_now_pct_{name}": mean,
            f"ties_carbon_vs_run_now_pct_{name}_deviation": spread,
            f"ties_carbon_vs_run_now_pct_{name}_least": least,
            f"ties_carbon_vs_run_now_pct_{name}_greatest": most,
        }
    return figures


def _with_ties_broken(world: World, seed: int) -> World:
    nodes = world.nodes
    off = np.random.default_rng(seed).uniform(1.0 - _TIE, 1.0 + _TIE, nodes.pue.size)
    return world._replace(nodes=nodes._replace(pue=nodes.pue * off))


def plans_kept(world: World) -> dict[str, float]:
    """Return how well the plans of held jobs with one worker came true.

    Grams are those of their first plan's start on arrival, of their last plan, and of their runs.
    """
    assert world.green_policy is not None
    schedule, jobs = simulate(world, policy_named(HELD)), world.jobs
    until_s, segments = billed_until_s(world, schedule), schedule.run_segments
    bill = bill_placements(
        billed_nodes_of(world), billed_placements(world, schedule), zone_series(world),
        (0.0, until_s), cost_model(world),
    )  # fmt: skip
    of_jobs = [
        np.bincount(segments.job, each, jobs.arrival_s.size)
        for each in (bill.carbon_active_g, bill.energy_active_j / JOULES_PER_KWH)
    ]
    rows = [
        (
            one.at_arrival_g, one.chosen.run.carbon_g, of_jobs[0][job],
            one.chosen.run.energy_kwh, of_jobs[1][job],
            world.zones[world.nodes.zone[schedule.node[job]]] == one.zone,
        )
        for job, one in decided_by_operator(world, world.green_policy, schedule).by_plan.items()
        if schedule.planned_s[job] > jobs.arrival_s[job] + 1.0 and jobs.workers[job] == 1.0
    ]  # fmt: skip
    at_arrival_g, planned_g, run_g, planned_kwh, run_kwh, as_planned = np.array(rows, float).T
    there = as_planned > 0.0
    return {
        "held_runs": len(rows),
        "in_another_zone_pct": 100.0 * float(1.0 - as_planned.mean()),
        "planned_vs_arrival_pct": _change_pct(planned_g, at_arrival_g),
        "run_vs_arrival_pct": _change_pct(run_g, at_arrival_g),
        "run_vs_planned_energy_in_its_zone_pct": _change_pct(run_kwh[there], planned_kwh[there]),
    }


def merit_words(world: World) -> str:
    """Return what the cores of the first zone take, from its best nodes to its worst."""
    steps, counts = np.unique(merit_orders(world)[0, 0].round(2), return_counts=True)
    parts = zip(steps.tolist(), (100.0 * counts / counts.sum()).tolist(), strict=True)
    return ", ".join(f"{step:g} for {share:.0f} % of the cores" for step, share in parts)


def day_world(
    jobs: int,
    seed: int,
    size: int = 1,
    suffix: str = "",
    *,
    has_exact_forecasts: bool = True,
    has_exact_estimates: bool = False,
) -> World:
    """Return the day, with exact forecasts or not, on so many times the nodes."""
    content = day_content(jobs, has_exact_forecasts=has_exact_forecasts)
    for group in content["cluster"]["nodes"]:
        group["count"] *= size
    generator = content["workload"]["generator"]
    if suffix == NO_GPU_JOBS:
        del generator["gpu_share"], generator["gpus"]
    if has_exact_estimates:
        del content["workload"]["estimate_error"]
    return build_world(scenario_of(content), seed=seed)


def _changes(world: World, placed_by: World | None = None) -> tuple[float, float]:
    """Return the changes of active carbon and cost against starting at once, as shares.

    Work may be placed in a world that differs from the one that is billed.
    """
    held, at_once = (simulate(placed_by or world, policy_named(name)) for name in (HELD, RUN_NOW))
    until_s = billed_until_s(world, held, at_once)
    waits, starts = (bill_of(world, each, until_s) for each in (held, at_once))
    return (
        float(waits.carbon_active_g.sum() / starts.carbon_active_g.sum()) - 1.0,
        float(waits.cost_active.sum() / starts.cost_active.sum()) - 1.0,
    )


def _change_pct(one: Floats, other: Floats) -> float:
    return 100.0 * float(one.sum() / other.sum() - 1.0)
