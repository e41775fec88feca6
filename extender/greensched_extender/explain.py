"""Content of the explain routes: decisions, assumed state of nodes, the policy in use."""

from collections.abc import Callable, Mapping
from typing import Any

from greensched_core.clock import Clock
from greensched_core.state import Node
from greensched_extender.decisions import Decisions, render
from greensched_extender.grid import ZoneNow, render_zone
from greensched_extender.policy_choice import PolicyChoice
from greensched_extender.scoring import ScoringAssumptions
from greensched_extender.service import Knowledge
from greensched_extender.snapshot import NodeReport
from greensched_extender.why import why

_MOST_DECISIONS = 5  # of one pod, the latest; each may list thousands of nodes


class Explanations:
    """Describes the extender's state as JSON values for people."""

    def __init__(
        self,
        *,
        known: Knowledge,
        choice: PolicyChoice,
        decisions: Decisions,
        assumptions: ScoringAssumptions,
        watches: Callable[[], Mapping[str, Any]],
        clock: Clock,
    ) -> None:
        self._snapshot = known.snapshot
        self._grid = known.grid
        self._policies = known.policies
        self._choice = choice
        self._decisions = decisions
        self._assumptions = assumptions
        self._watches = watches
        self._clock = clock

    def decisions(self, namespace: str, name: str) -> list[dict[str, Any]]:
        """Return the latest decisions on a pod, the latest first, each with its reason in words."""
        found = map(render, self._decisions.of(namespace, name)[:_MOST_DECISIONS])
        return [{**decision, "why": why(decision)} for decision in found]

    def nodes(self) -> list[dict[str, Any]]:
        """Return the assumed state of each node, sorted by name."""
        zones = self._signals()
        names = sorted(self._snapshot.node_names())
        reports = ((name, self._snapshot.report(name)) for name in names)
        return [
            _node(report.node, report, zones.get(report.node.zone), self._assumptions)
            for _, report in reports
            if report is not None and report.node is not None
        ]

    def policy(self) -> dict[str, Any]:
        """Return the policy in use, its assumptions, and the state of signals and watches."""
        assumed = self._assumptions
        return {
            **self._choice.describe(),
            "weights": self._policies.of_settings.weights._asdict(),
            "weightsFrom": self._policies.of_settings.source,
            "greenPolicies": len(self._policies),
            "unreadablePolicies": self._policies.faults(),
            "assumptions": {
                "utilisationRatio": assumed.utilisation_ratio,
                "gpuRatio": assumed.gpu_ratio,
                "emptyNodesSleep": assumed.empty_nodes_sleep,
                "defaultRuntimeSeconds": assumed.default_runtime_s,
            },
            "zones": [render_zone(signal) for signal in self._signals().values()],
            "watches": dict(self._watches()),
            "decisionsKept": len(self._decisions),
        }

    def _signals(self) -> dict[str, ZoneNow]:
        return self._grid.now(self._snapshot.view().facts.zones, self._clock.now())


def _node(
    node: Node, report: NodeReport, signal: ZoneNow | None, assumed: ScoringAssumptions
) -> dict[str, Any]:
    cpu_cores, memory_bytes, gpus = report.requested
    gpu = node.gpu
    return {
        "name": node.name,
        "schedulable": node.schedulable,
        "zone": node.zone or None,
        "carbonGramsPerKwh": signal.carbon_g_per_kwh if signal else None,
        "pricePerMwh": signal.price_per_mwh if signal else None,
        "hardware": node.hardware,
        "curveSource": node.curve_source,
        "curveWatts": list(node.curve.watts),
        "cpuCores": node.cpu_cores,
        "memoryBytes": node.memory_bytes,
        "gpus": node.gpu_count,
        "gpuModel": gpu.model if gpu else None,
        "speed": node.speed,
        "pue": node.pue,
        "powerBudgetWatts": node.power_budget_w,
        "gpuWatts": None if report.gpu_w is None else report.gpu_w.value,
        "gpuMeter": None if report.gpu_w is None else report.gpu_w.source,
        "gpuShare": assumed.gpu_ratio if report.gpu_share is None else report.gpu_share,
        "gpuShareFrom": "assumed" if report.gpu_share is None else "measured",
        "cpuUtilisation": report.utilisation,
        "cpuUtilisationFrom": report.utilisation_source,
        "powerWatts": _watts(node, report, assumed.gpu_ratio),
        "powerFrom": "curve" if report.measured_w is None else "measured",
        "powerMeter": report.meter or None,
        "idleWatts": node.curve.idle_w + (gpu.count * gpu.idle_w if gpu else 0.0),
        "peakWatts": node.curve.peak_w + (gpu.count * gpu.peak_w if gpu else 0.0),
        "pods": report.pods,
        "provisionalPods": report.provisional,
        "requestedCpuCores": cpu_cores,
        "requestedMemoryBytes": memory_bytes,
        "requestedGpus": gpus,
        "faults": list(report.faults),
    }


def _watts(node: Node, report: NodeReport, gpu_ratio: float) -> float:
    if report.measured_w is not None:
        return report.measured_w
    watts = node.curve.at(report.utilisation)
    if report.gpu_w is not None:
        return watts + report.gpu_w.value
    if node.gpu is not None:
        share = gpu_ratio if report.gpu_share is None else report.gpu_share
        busy = min(report.requested[2], node.gpu.count)
        watts += node.gpu.count * node.gpu.idle_w
        watts += busy * (node.gpu.peak_w - node.gpu.idle_w) * share
    return watts
