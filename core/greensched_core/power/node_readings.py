"""What meters say of nodes: which questions to ask Prometheus, and which answer counts.

Zones overlap, so one CPU meter counts per node, and GPU meters come on top of those that do not see
GPUs. The names of utilisation's series are those of node_exporter, and of the kubelet's
/metrics/resource.
"""

from collections.abc import Callable, Iterable

from greensched_core.power.meters.catalogue import GPU_METERS, NODE_METERS
from greensched_core.power.meters.meter import BY_NODE, Answers, NodeMeter, by_node, rate
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
    """Return the PromQL of each question by its name; rates over `window_s`, four scrapes or more.

    Raises ValueError when two meters call different questions by one name.
    """
    asked: dict[str, str] = {}
    for meter in meters:
        for name, query in meter.questions.items():
            if asked.setdefault(name, query) != query:
                raise ValueError(f"{meter.source} asks another question that is called {name}")
    asked |= _UTILISATION
    return {name: query.replace("$window", f"{window_s:.0f}s") for name, query in asked.items()}


def node_watts(answers: Answers) -> dict[str, Reading]:
    """Return each node's watts by the first meter that has it, GPUs included where metered.

    0 W of a CPU is no sample: virtual machines show counters that stand still.
    """
    taken_at = _taken_at(answers)
    gpus = _gpu_watts(answers)
    readings: dict[str, Reading] = {}
    for meter in NODE_METERS:
        for node, watts in meter.watts(answers).items():
            if node in readings or watts <= 0:
                continue
            source = meter.source
            if not meter.sees_gpus and node in gpus:
                gpu_source, gpu_watts = gpus[node]
                watts, source = watts + gpu_watts, f"{source}+{gpu_source}"
            readings[node] = Reading(watts, WATTS, taken_at, source)
    return readings


def _gpu_watts(answers: Answers) -> dict[str, tuple[str, float]]:
    """Return the GPUs' watts by node, with the source: the first meter's that has them."""
    gpus: dict[str, tuple[str, float]] = {}
    for meter in GPU_METERS:
        for node, watts in meter.watts(answers).items():
            gpus.setdefault(node, (meter.source, watts))
    return gpus


def node_utilisation(
    answers: Answers, cpu_cores: Callable[[str], float | None]
) -> dict[str, Reading]:
    """Return each node's CPU utilisation 0 … 1 by the first source that has it.

    Order: greensched, node_exporter, kubelet. The kubelet counts cores in use: they are divided by
    `cpu_cores` of its name, else by kube-state-metrics' capacity, else left out.
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
    """Return the earliest evaluation time, 0 without any sample."""
    return min((found[0].taken_at for found in answers.values() if found), default=0.0)
