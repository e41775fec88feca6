"""What a run of the demo was, in words and figures, and the files that say so."""

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
from greensched_testbed.demo.report import write_report
from greensched_testbed.demo.results import ThreeRuns
from greensched_testbed.demo.waiting import margin_s


@dataclass(frozen=True, slots=True)
class Circumstances:
    """How the figures came about."""

    trace: Trace
    seed: int
    rate: float  # seconds of the workload in a second of the run
    nodes: int
    policy: ServedPolicy
    assumed: BillAssumptions


def facts(told: Circumstances) -> Sequence[tuple[str, str]]:
    """Return what the page says of the run."""
    trace, held = told.trace, told.assumed
    return [
        ("workload", f"{trace.source}, {len(trace.tasks)} pods within 6 h"),
        *(("", note) for note in trace.notes),
        *(("left out", str(fault)) for fault in trace.faults),
        ("runtime", "a pod runs equally long on every node, whatever its CPU or GPU"),
        ("clock", f"one second of the run is {told.rate:.0f} s of the workload"),
        (
            "margin",
            f"held work is planned to end {margin_s(told.rate) / 60:.0f} min before its "
            f"deadline, or a tenth of its runtime: three real seconds, the time that pods need "
            f"to start",
        ),
        ("cluster", f"{told.nodes} kwok nodes, Kubernetes {KUBERNETES_VERSION}"),
        ("repeat", "the default scheduler breaks ties at random: its bill differs from run to run"),
        ("grid", f"synthetic, seed {told.seed}; the forecast is exact"),
        ("policy", str(told.policy)),
        (
            "power",
            "simulated, by the nodes' curves; with the extender's defaults, "
            f"{held.utilisation_ratio:.0%} of requested CPU and {held.gpu_ratio:.0%} of a GPU's "
            f"range are used, PUE {held.default_pue}; "
            f"empty nodes {'sleep' if held.empty_nodes_sleep else 'stay on'}",
        ),
        ("machine", f"{platform.machine()}, Python {platform.python_version()}"),
        ("made", time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())),
    ]


def circumstances(told: Circumstances) -> Mapping[str, Any]:
    """Return what the summary says of how its figures came about."""
    held = told.assumed
    return {
        "simulated": True,
        "workload": told.trace.source,
        "seed": told.seed,
        "policy": told.policy.name,
        "policy_bundle": told.policy.bundle,
        "utilisation_ratio": held.utilisation_ratio,
        "gpu_ratio": held.gpu_ratio,
        "default_pue": held.default_pue,
        "empty_nodes_sleep": held.empty_nodes_sleep,
        "workload_s_per_s": told.rate,
    }


def write_results(
    folder: Path,
    outcome: ThreeRuns,
    grid: Mapping[str, Sequence[SyntheticSlot]],
    told: Circumstances,
    figures: Mapping[str, Any],
) -> Path:
    """Write page and summary into a folder, and return where the page is."""
    folder.mkdir(parents=True, exist_ok=True)
    report = folder / "report.html"
    write_report(report, outcome, grid, facts(told))
    (folder / "summary.json").write_text(json.dumps(figures, indent=2) + "\n")
    return report
