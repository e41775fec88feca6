"""Readings of nodes: the Prometheus queries, and which answer counts.

Meters' zones overlap, so one CPU meter counts per node. GPU meters are added to meters that do not
see GPUs. Utilisation uses series of node_exporter and of the kubelet's /metrics/resource.
"""

from collections.abc import Callable, Iterable

from greensched_core.metering.meters.catalogue import GPU_METERS, NODE_METERS
from greensched_core.metering.meters.meter import BY_NODE, Answers, NodeMeter, by_node, rate
from greensched_core.signals.readings import RATIO, WATTS, Reading

_IDLE_SECONDS = 'node_cpu_seconds_total{mode="idle"}'
_UTILISATION = {
    "greensched-utilisation": f"max by ({BY_NODE}) (greensched_node_cpu_utilisation_ratio)",
    "node-exporter": f"clamp_min(1 - {rate(_IDLE_SECONDS, 'avg')}, 0)",
    "kubelet": rate("node_cpu_usage_seconds_total"),
    "capacity": 'max by (node) (kube_node_status_capacity{resource="cpu"})',
}


def queries(
    window_s: float = 120.0, meters: Iterable[NodeMeter] = (*NODE_METERS, *GPU_METERS)
) -> dict[str, str]:
    """Return all PromQL queries by name; rates are over `window_s`, at least four scrapes.

    Raises ValueError if two meters use one name for different queries.
    """
    asked: dict[str, str] = {}
    for meter in meters:
        for name, query in meter.questions.items():
            if asked.setdefault(name, query) != query:
                raise ValueError(f"{meter.source}: another meter has a different question {name}")
    asked |= _UTILISATION
    return {name: query.replace("$window", f"{window_s:.0f}s") for name, query in asked.items()}


def node_watts(answers: Answers) -> dict[str, Reading]:
    """Return each node's watts by the first meter that has it, with GPUs if metered.

    0 W of a CPU does not count: in virtual machines the counters stand still.
    """
    taken_at = _taken_at(answers)
    gpus = measured_gpu_watts(answers)
    readings: dict[str, Reading] = {}
    for meter in NODE_METERS:
        for node, watts in meter.watts(answers).items():
            if node in readings or watts <= 0:
                continue
            source = meter.source
            if not meter.sees_gpus and node in gpus:
                watts, source = watts + gpus[node].value, f"{source}+{gpus[node].source}"
            readings[node] = Reading(watts, WATTS, taken_at, source)
    return readings


def measured_gpu_watts(answers: Answers) -> dict[str, Reading]:
    """Return the watts of each node's GPUs by the first meter that has them."""
    taken_at = _taken_at(answers)
    gpus: dict[str, Reading] = {}
    for meter in GPU_METERS:
        for node, watts in meter.watts(answers).items():
            gpus.setdefault(node, Reading(watts, WATTS, taken_at, meter.source))
    return gpus


def node_utilisation(
    answers: Answers, cpu_cores: Callable[[str], float | None]
) -> dict[str, Reading]:
    """Return each node's CPU utilisation 0 … 1 by the first source that has it.

    Order: greensched, node_exporter, kubelet. The kubelet counts cores in use, which are divided
    by `cpu_cores` of the node, else by kube-state-metrics' capacity. Without both it is left out.
    """
    taken_at = _taken_at(answers)
    capacity = by_node(answers.get("capacity", ()))
    kubelet: dict[str, float] = {}
    for node, used in by_node(answers.get("kubelet", ())).items():
        cores = cpu_cores(node) or capacity.get(node, 0.0)
        if cores > 0:
            kubelet[node] = used / cores
    readings: dict[str, Reading] = {}
    for source, ratios in (
        ("greensched", by_node(answers.get("greensched-utilisation", ()))),
        ("node-exporter", by_node(answers.get("node-exporter", ()))),
        ("kubelet", kubelet),
    ):
        for node, ratio in ratios.items():
            if node not in readings:
                readings[node] = Reading(min(ratio, 1.0), RATIO, taken_at, source)
    return readings


def _taken_at(answers: Answers) -> float:
    """Return the earliest evaluation time; 0 without samples."""
    return min((found[0].taken_at for found in answers.values() if found), default=0.0)
