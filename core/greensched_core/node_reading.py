"""Reads a Node object into our Node: zone, power, capacity, limits, and faults."""

import math
from collections.abc import Mapping

from greensched_core import labels
from greensched_core.objects import NodeObject, allocatable
from greensched_core.power.catalogue import PowerCatalogue
from greensched_core.quoting import quoted
from greensched_core.state import Node

_LARGEST_PUE = 5.0  # above any data centre's; a larger value is a typing error


class NodeReader:
    """Reads nodes; a value that cannot be read counts as absent and is listed in the faults."""

    def __init__(self, catalogue: PowerCatalogue, zone_map: Mapping[str, str]) -> None:
        self._catalogue = catalogue
        self._zone_map = zone_map

    def read(self, item: NodeObject) -> tuple[Node, tuple[str, ...]]:
        """Return the node and a sentence about each value that could not be read; never raises."""
        node_labels, annotations = item.metadata.labels or {}, item.metadata.annotations or {}
        (cpu_cores, memory_bytes, gpus), faults = allocatable(item)
        all_faults = list(faults)
        power = self._catalogue.resolve(node_labels, annotations, cpu_cores, int(gpus))
        all_faults.extend(power.faults)
        node = Node(
            name=item.metadata.name,
            zone=self._zone(node_labels, all_faults),
            cpu_cores=cpu_cores,
            memory_bytes=memory_bytes,
            gpu=power.gpu,
            curve=power.curve,
            curve_source=power.source,
            hardware=power.hardware,
            speed=power.speed,
            pue=_pue(node_labels.get(labels.PUE), all_faults),
            power_budget_w=_budget_w(annotations.get(labels.POWER_BUDGET_WATTS), all_faults),
            schedulable=not item.spec.unschedulable,
        )
        return node, tuple(all_faults)

    def _zone(self, node_labels: Mapping[str, str], faults: list[str]) -> str:
        zone = node_labels.get(labels.GRID_ZONE)
        if zone:
            return zone
        for label in (labels.TOPOLOGY_ZONE, labels.TOPOLOGY_REGION):
            mapped = self._zone_map.get(node_labels.get(label, ""))
            if mapped:
                return mapped
        faults.append(
            f"grid zone unknown: set the label {labels.GRID_ZONE}, or map the value of "
            f"{labels.TOPOLOGY_ZONE} or {labels.TOPOLOGY_REGION} to one by the setting zone_map"
        )
        return ""


def _pue(text: str | None, faults: list[str]) -> float | None:
    pue = _number(text)
    if text is None or 1.0 <= pue <= _LARGEST_PUE:
        return None if text is None else pue
    faults.append(f"label {labels.PUE}: {quoted(text)} is not a number from 1 to {_LARGEST_PUE:g}")
    return None


def _budget_w(text: str | None, faults: list[str]) -> float | None:
    budget_w = _number(text)
    if text is None or (budget_w > 0 and math.isfinite(budget_w)):
        return None if text is None else budget_w
    problem = f"{quoted(text)} is not a number of watts above 0"
    faults.append(f"annotation {labels.POWER_BUDGET_WATTS}: {problem}")
    return None


def _number(text: str | None) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        return math.nan
