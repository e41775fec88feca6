"""Scenarios drawn at random from a part of the data: clusters, grids, errors and work of all kinds.

A policy that has seen all of them should not depend on any one (domain randomisation: Tobin et al.,
"Domain Randomization for Transferring Deep Neural Networks from Simulation to the Real World", IROS
2017).
"""

import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np

from greensched_simulator.scenario.model import Scenario
from greensched_simulator.world.scenario_loading import parse_scenario
from greensched_train.data_split import MARGIN, DataPart, euro_rates, trace_file, zone_grid

DAYS = 3  # within which jobs arrive
FEWEST_NODES, MOST_NODES = 8, 256
# The jobs of traces are small, and nodes with GPUs run many: large clusters would have too many.
_MOST_WITH_TRACE, _MOST_WITH_GPUS = 24, 48
_MOST_JOBS = 1_200  # that are aimed at, for speed: jobs are larger in larger clusters
# Servers of several generations in the power catalogue, and their logical CPUs.
_SERVERS = {
    "epyc-7742-1s": 128, "epyc-7763-1s": 128, "epyc-9654-1s": 192, "xeon-8180-2s": 112,
    "xeon-8380-2s": 160, "xeon-8480-2s": 224, "xeon-e5-2699v4-2s": 88,
}  # fmt: skip
_GPUS = ("a100-sxm", "h100-sxm", "v100-sxm", "t4")
_GPUS_IN_A_NODE = 8
_CORES = (1, 2, 4, 8, 16, 32, 64)
_SHARE_OF_TRACES = 0.25  # of scenarios without GPUs
_SHARE_WITH_GPUS = 0.2


def drawn_scenario(part: DataPart, seed: int, environment: Mapping[str, str]) -> Scenario:
    """Return the scenario of a seed; the same seed gives the same one.

    `environment` has GREENSCHED_DATA. Raises BadInput if the data sets are not there.
    """
    return parse_scenario(drawn_document(part, seed), Path(os.curdir), environment)


def drawn_document(part: DataPart, seed: int) -> dict[str, Any]:
    """Return the content of the scenario file of a seed."""
    dice = np.random.default_rng([seed, *part.name.encode()])
    zones = tuple(sorted(dice.choice(part.zones, int(dice.integers(1, 4)), replace=False).tolist()))
    has_gpus = bool(dice.random() < _SHARE_WITH_GPUS)
    has_trace = not has_gpus and bool(dice.random() < _SHARE_OF_TRACES)
    most = _MOST_WITH_TRACE if has_trace else _MOST_WITH_GPUS if has_gpus else MOST_NODES
    nodes = _drawn_nodes(dice, zones, most, has_gpus=has_gpus)
    work = _drawn_work(dice)
    if has_trace:
        work["trace"] = {"file": trace_file(str(dice.choice(part.traces)))}
    else:
        work["generator"] = _drawn_generator(dice, nodes, has_gpus=has_gpus)
    forecast_error = float(dice.uniform(0.0, 0.2))
    return {
        "name": f"{part.name}-{seed}",
        "seed": seed,
        "start": _drawn_start(dice, part),
        "length": f"{DAYS}d",
        "exchange_rates": euro_rates(zones),
        "cluster": {"nodes": nodes},
        "grids": {zone: zone_grid(zone, forecast_error) for zone in zones},
        "workload": work,
        "weights": _drawn_weights(dice),
    }


def _drawn_start(dice: np.random.Generator, part: DataPart) -> str:
    """Return a midnight UTC from which on the part has data for the scenario and its margin."""
    days = (part.end - part.begin - MARGIN).days - DAYS
    return (part.begin + timedelta(days=int(dice.integers(0, days)))).isoformat()


def _drawn_nodes(
    dice: np.random.Generator, zones: tuple[str, ...], most: int, *, has_gpus: bool
) -> list[dict[str, Any]]:
    """Return one to three kinds of nodes in each zone."""
    count = np.exp(dice.uniform(np.log(FEWEST_NODES), np.log(most)))
    kinds = dice.choice(list(_SERVERS), int(dice.integers(1, 4)), replace=False).tolist()
    groups = [(zone, kind) for zone in zones for kind in kinds]
    model, found = str(dice.choice(_GPUS)), []
    for place, (zone, kind) in enumerate(groups):
        cores = _SERVERS[kind]
        found.append({
            "name": f"group-{place}", "count": max(round(count / len(groups)), 1), "zone": zone,
            "hardware": kind, "cpu_cores": cores, "memory": f"{4 * cores}Gi",
        })  # fmt: skip
        if has_gpus:
            found[-1]["gpus"] = {"model": model, "count": _GPUS_IN_A_NODE}
    return found


def _drawn_work(dice: np.random.Generator) -> dict[str, Any]:
    """Return what scenarios say of work besides where it comes from."""
    short, long = sorted(dice.choice([3, 6, 12, 18, 24, 36], 2, replace=False).tolist())
    return {
        "load": float(dice.uniform(0.3, 1.1)),
        "estimate_error": float(dice.uniform(0.0, 0.4)),
        "frequency_sensitivity": dice.choice([0.2, 0.4, 0.6, 0.8, 1.0], 3).tolist(),
        "skip_unplaceable": True,
        "slack": [
            {"shorter_than": "1h", "may_wait": "none" if dice.random() < 0.5 else "2h"},
            {"shorter_than": "3h", "may_wait": f"{short}h"},
            {"may_wait": f"{long}h"},
        ],
    }


def _drawn_generator(
    dice: np.random.Generator, nodes: list[dict[str, Any]], *, has_gpus: bool
) -> dict[str, Any]:
    """Return generated jobs, so large that a full cluster has about _MOST_JOBS."""
    median_h = float(np.exp(dice.uniform(np.log(0.5), np.log(4.0))))
    generator = {
        "runtime_median": f"{60 * median_h:.0f}m",
        "runtime_sigma": float(dice.uniform(0.6, 1.2)),
        "runtime_longest": "24h",
        "daily_swing": float(dice.uniform(0.0, 0.8)),
        "peak": f"{int(dice.integers(0, 24))}h",
    }
    if has_gpus:
        gpu_share = float(dice.uniform(0.3, 1.0))
        return generator | {"cpu_cores": [2, 4, 8], "gpu_share": gpu_share, "gpus": [1, 2, 4]}
    core_h = 24.0 * DAYS * sum(group["count"] * group["cpu_cores"] for group in nodes)
    wanted = core_h / (2.0 * median_h * _MOST_JOBS)  # the mean of log-normal runtimes is longer
    cores = [each for each in _CORES if each <= max(4.0 * wanted, 4.0)][-4:]
    return generator | {"cpu_cores": cores, "workers": _drawn_workers(wanted / cores[-1])}


def _drawn_workers(times: float) -> list[int]:
    """Return the workers of jobs that want so many times the cores of one."""
    if times <= 1.0:
        return [1]
    return [1, 2, 4] if times <= 4.0 else [2, 4, 8]


def _drawn_weights(dice: np.random.Generator) -> dict[str, float]:
    """Return weights of which half are the usual ones: a policy is told what counts how much."""
    if dice.random() < 0.5:
        return {"cost": 1.0, "carbon": 1.0, "performance": 0.1}
    cost, carbon = dice.dirichlet([1.0, 1.0]) * 2.0
    return {"cost": float(cost), "carbon": float(carbon), "performance": float(dice.uniform(0, 1))}
