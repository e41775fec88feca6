"""Meters as Prometheus knows them: what to ask, and which answer counts for a node.

Metric names and labels: Kepler docs/user/metrics.md (0.10 and later) and its 0.9 collector,
Scaphandre's and DCGM's exporters, node_exporter, the kubelet's /metrics/resource. Zones overlap, so
one CPU meter counts per node, and GPU meters come on top of those that do not see GPUs.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from greensched_core.power.prometheus import Sample
from greensched_core.signals.readings import RATIO, WATTS, Reading
from greensched_core.units import watts_from_microwatts

# Who is measured: relabelled from the pod's node, or what the exporter itself says, or its address.
NODE_LABELS = ("node", "node_name", "exported_instance", "Hostname", "hostname", "instance")
_BY = ", ".join(NODE_LABELS)
_PORT = re.compile(r":\d+$", re.ASCII)
_IDLE_SECONDS = 'node_cpu_seconds_total{mode="idle"}'
_MOST_BOARD_W = 3_000.0  # DCGM's blanks lie near 2^63; no board draws this


class Ask(StrEnum):
    """The questions, named."""

    OWN_POWER = "greensched"
    KEPLER_CPU = "kepler-cpu"
    KEPLER_GPU = "kepler-gpu"
    OLD_KEPLER_PLATFORM = "kepler-0.9-platform"
    OLD_KEPLER_PACKAGE = "kepler-0.9-package"
    OLD_KEPLER_DRAM = "kepler-0.9-dram"
    OLD_KEPLER_GPU = "kepler-0.9-gpu"
    SCAPHANDRE = "scaphandre"
    DCGM = "dcgm"
    RAPL_PACKAGE = "rapl-package"
    RAPL_DRAM = "rapl-dram"
    OWN_UTILISATION = "greensched-utilisation"
    NODE_EXPORTER = "node-exporter"
    KUBELET = "kubelet"
    CAPACITY = "capacity"


Samples = Mapping[Ask, Sequence[Sample]]


def queries(window_s: float = 120.0) -> dict[Ask, str]:
    """Return the PromQL of each question; rates over `window_s`, at least four scrapes."""
    window = f"[{window_s:.0f}s]"

    def rate(metric: str, function: str = "sum") -> str:
        return f"{function} by ({_BY}) (rate({metric}{window}))"

    return {
        Ask.OWN_POWER: f"max by ({_BY}) (greensched_node_power_watts)",
        Ask.KEPLER_CPU: f"sum by ({_BY}, zone) (kepler_node_cpu_watts)",
        Ask.KEPLER_GPU: f"sum by ({_BY}) (kepler_node_gpu_watts)",
        Ask.OLD_KEPLER_PLATFORM: rate("kepler_node_platform_joules_total"),
        Ask.OLD_KEPLER_PACKAGE: rate("kepler_node_package_joules_total"),
        Ask.OLD_KEPLER_DRAM: rate("kepler_node_dram_joules_total"),
        Ask.OLD_KEPLER_GPU: rate("kepler_node_gpu_joules_total"),
        Ask.SCAPHANDRE: f"sum by ({_BY}, value_source) (scaph_host_power_microwatts)",
        Ask.DCGM: f"max by ({_BY}, UUID) (DCGM_FI_DEV_POWER_USAGE < {_MOST_BOARD_W:.0f})",
        Ask.RAPL_PACKAGE: rate("node_rapl_package_joules_total"),
        Ask.RAPL_DRAM: rate("node_rapl_dram_joules_total"),
        Ask.OWN_UTILISATION: f"max by ({_BY}) (greensched_node_cpu_utilisation_ratio)",
        Ask.NODE_EXPORTER: f"clamp_min(1 - {rate(_IDLE_SECONDS, 'avg')}, 0)",
        Ask.KUBELET: rate("node_cpu_usage_seconds_total"),
        Ask.CAPACITY: 'max by (node) (kube_node_status_capacity{resource="cpu"})',
    }


@dataclass(frozen=True, slots=True)
class _Meter:
    """Watts by node of one way to measure."""

    source: str
    watts: Mapping[str, float]
    sees_gpus: bool = False


def node_watts(samples: Samples) -> dict[str, Reading]:
    """Return each node's watts by the first meter that has it, GPUs included where metered.

    Order: greensched, Kepler (0.10 and later), Kepler (to 0.9), Scaphandre, RAPL by node_exporter.
    0 W of a CPU is no sample: virtual machines show counters that stand still.
    """
    taken_at = _taken_at(samples)
    gpus = _gpu_watts(samples)
    readings: dict[str, Reading] = {}
    for meter in _cpu_meters(samples):
        for node, watts in meter.watts.items():
            if node in readings or watts <= 0:
                continue
            source = meter.source
            if not meter.sees_gpus and node in gpus:
                gpu_source, gpu_watts = gpus[node]
                watts, source = watts + gpu_watts, f"{source}+{gpu_source}"
            readings[node] = Reading(watts, WATTS, taken_at, source)
    return readings


def node_utilisation(
    samples: Samples, cpu_cores: Callable[[str], float | None]
) -> dict[str, Reading]:
    """Return each node's CPU utilisation 0 … 1 by the first source that has it.

    Order: greensched, node_exporter, kubelet. The kubelet counts cores in use: they are divided by
    `cpu_cores` of its name, else by kube-state-metrics' capacity, else left out.
    """
    taken_at = _taken_at(samples)
    capacity = _by_node(samples.get(Ask.CAPACITY, ()))
    kubelet: dict[str, float] = {}
    for node, used in _by_node(samples.get(Ask.KUBELET, ())).items():
        cores = cpu_cores(node) or capacity.get(node, 0.0)
        if cores > 0:
            kubelet[node] = used / cores
    readings: dict[str, Reading] = {}
    for source, ratios in (
        ("greensched", _by_node(samples.get(Ask.OWN_UTILISATION, ()))),
        ("node-exporter", _by_node(samples.get(Ask.NODE_EXPORTER, ()))),
        ("kubelet", kubelet),
    ):
        for node, ratio in ratios.items():
            if node not in readings:
                readings[node] = Reading(min(ratio, 1.0), RATIO, taken_at, source)
    return readings


def _cpu_meters(samples: Samples) -> Iterable[_Meter]:
    """Yield the meters of CPU and memory, best first."""
    yield _Meter("greensched", _by_node(samples.get(Ask.OWN_POWER, ())), sees_gpus=True)
    zones: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples.get(Ask.KEPLER_CPU, ()):
        zones[sample.labels.get("zone", "")].append(sample)
    yield _Meter("kepler", _package_and_dram(zones["package"], zones["dram"]))
    yield _Meter("kepler-psys", _by_node(zones["psys"]), sees_gpus=True)  # the whole platform
    yield _Meter("kepler-0.9", _package_and_dram(samples.get(Ask.OLD_KEPLER_PACKAGE, ()),
                                                 samples.get(Ask.OLD_KEPLER_DRAM, ())))  # fmt: skip
    platform = _by_node(samples.get(Ask.OLD_KEPLER_PLATFORM, ()))
    yield _Meter("kepler-0.9-platform", platform, sees_gpus=True)
    yield from _scaphandre(samples.get(Ask.SCAPHANDRE, ()))
    yield _Meter("rapl", _package_and_dram(samples.get(Ask.RAPL_PACKAGE, ()),
                                           samples.get(Ask.RAPL_DRAM, ())))  # fmt: skip


def _scaphandre(samples: Sequence[Sample]) -> Iterable[_Meter]:
    """Yield what Scaphandre told of whole platforms, which it prefers and names, then the rest."""
    for source, is_whole in (("scaphandre-psys", True), ("scaphandre", False)):
        mine = _by_node(each for each in samples if _is_of_platform(each) is is_whole)
        watts = {node: watts_from_microwatts(microwatts) for node, microwatts in mine.items()}
        yield _Meter(source, watts, sees_gpus=is_whole)


def _is_of_platform(sample: Sample) -> bool:
    """Say whether Scaphandre read RAPL's psys, as `powercap_rapl_psys` (exporters/mod.rs)."""
    return sample.labels.get("value_source", "").endswith("_psys")


def _package_and_dram(package: Iterable[Sample], dram: Iterable[Sample]) -> dict[str, float]:
    """Add memory where it is metered apart; memory alone is no node."""
    memory = _by_node(dram)
    return {node: watts + memory.get(node, 0.0) for node, watts in _by_node(package).items()}


def _gpu_watts(samples: Samples) -> dict[str, tuple[str, float]]:
    """Return the GPUs' watts by node: DCGM's, else Kepler's."""
    boards: dict[tuple[str, str], float] = {}
    for sample in samples.get(Ask.DCGM, ()):
        node, watts = node_named(sample.labels), sample.value
        if node and 0 <= watts < _MOST_BOARD_W:
            board = (node, sample.labels.get("UUID", ""))  # MIG and time-slicing repeat the board
            boards[board] = max(boards.get(board, 0.0), watts)
    dcgm: dict[str, float] = defaultdict(float)
    for (node, _), watts in boards.items():
        dcgm[node] += watts
    gpus: dict[str, tuple[str, float]] = {}
    for source, by_node in (
        ("kepler-0.9-gpu", _by_node(samples.get(Ask.OLD_KEPLER_GPU, ()))),
        ("kepler-gpu", _by_node(samples.get(Ask.KEPLER_GPU, ()))),
        ("dcgm", dcgm),
    ):
        gpus |= {node: (source, watts) for node, watts in by_node.items()}
    return gpus


def _by_node(samples: Iterable[Sample]) -> dict[str, float]:
    """Return the finite, non-negative values by node; one meter scraped twice counts once."""
    values: dict[str, float] = {}
    for sample in samples:
        node = node_named(sample.labels)
        if node and math.isfinite(sample.value) and sample.value >= 0:
            values[node] = max(values.get(node, 0.0), sample.value)
    return values


def node_named(labels: Mapping[str, str]) -> str:
    """Return the node that a series is of, "" where none of its labels tells."""
    for label in NODE_LABELS:
        name = labels.get(label)
        if name:
            return _PORT.sub("", name)
    return ""


def _taken_at(samples: Samples) -> float:
    """Return the earliest evaluation time, 0 without any sample."""
    return min((found[0].taken_at for found in samples.values() if found), default=0.0)
