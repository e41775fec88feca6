"""Describes a run of the demo, and writes its page and summary."""

import json
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from greensched_simulator.formats.synthetic_grid import SyntheticSlot
from greensched_simulator.formats.workload import Trace
from greensched_testbed.binaries import KUBERNETES_VERSION
from greensched_testbed.demo.billing import BillAssumptions
from greensched_testbed.demo.cluster import ServedPolicy
from greensched_testbed.demo.report import write_demo_report
from greensched_testbed.demo.results import ThreeRuns
from greensched_testbed.demo.waiting import clock_margin_s


@dataclass(frozen=True, slots=True)
class Circumstances:
    """The conditions under which the figures were measured."""

    trace: Trace
    seed: int
    rate: float  # seconds of the workload per second of the run
    nodes: int
    policy: ServedPolicy
    assumed: BillAssumptions


def demo_facts(conditions: Circumstances) -> Sequence[tuple[str, str]]:
    """Return the page's facts on the run."""
    trace, assumed = conditions.trace, conditions.assumed
    return [
        ("workload", f"{trace.source}, {len(trace.tasks)} pods within 6 h"),
        *(("", note) for note in trace.notes),
        *(("left out", str(fault)) for fault in trace.faults),
        ("runtime", "a pod runs equally long on every node, independent of its CPU or GPU"),
        ("clock", f"one second of the run is {conditions.rate:.0f} s of the workload"),
        (
            "margin",
            f"held work is planned to end {clock_margin_s(conditions.rate) / 60:.0f} min before "
            f"its deadline: three real seconds, the time that pods need to start",
        ),
        ("cluster", f"{conditions.nodes} kwok nodes, Kubernetes {KUBERNETES_VERSION}"),
        ("repeat", "the default scheduler breaks ties at random: its bill differs from run to run"),
        ("grid", f"synthetic, seed {conditions.seed}; the forecast is exact"),
        ("policy", str(conditions.policy)),
        (
            "power",
            "simulated, by the nodes' curves; with the extender's defaults, "
            f"{assumed.utilisation_ratio:.0%} of requested CPU and {assumed.gpu_ratio:.0%} of a "
            f"GPU's range are used, PUE {assumed.default_pue}; "
            f"empty nodes {'sleep' if assumed.empty_nodes_sleep else 'stay on'}",
        ),
        ("machine", f"{platform.machine()}, Python {platform.python_version()}"),
        ("made", time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())),
    ]


def circumstances(conditions: Circumstances) -> Mapping[str, Any]:
    """Return the summary's entries on the run's conditions."""
    assumed = conditions.assumed
    return {
        "simulated": True,
        "workload": conditions.trace.source,
        "seed": conditions.seed,
        "policy": conditions.policy.name,
        "policy_bundle": conditions.policy.bundle,
        "utilisation_ratio": assumed.utilisation_ratio,
        "gpu_ratio": assumed.gpu_ratio,
        "default_pue": assumed.default_pue,
        "empty_nodes_sleep": assumed.empty_nodes_sleep,
        "workload_s_per_s": conditions.rate,
    }


def write_demo_results(
    folder: Path,
    outcome: ThreeRuns,
    grid: Mapping[str, Sequence[SyntheticSlot]],
    conditions: Circumstances,
    figures: Mapping[str, Any],
) -> Path:
    """Write page and summary into a folder, and return the page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    report = folder / "report.html"
    write_demo_report(report, outcome, grid, demo_facts(conditions))
    (folder / "summary.json").write_text(json.dumps(figures, indent=2) + "\n")
    return report
