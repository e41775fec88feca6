"""Warnings of held work that no node can take: the scheduler tells only once it is released."""

from greensched_operator.holding.judging import MayWait
from greensched_operator.planning.situation import Situation
from greensched_operator.planning.work_power import pod_needs

_GIB = 2.0**30
_STILL = "it is started as planned all the same, as such a node may be added"


def place_fault(waiting: MayWait, situation: Situation) -> str:
    """Return why no node can take a workload now; "" if one can, or no node is known."""
    selector = waiting.work.node_selector
    if selector and not situation.zones_for(waiting):
        asked = ", ".join(f"{key}={value}" for key, value in sorted(selector.items()))
        return f"no node has the labels of its nodeSelector, {asked}; {_STILL}"
    needs = pod_needs(waiting.work)
    shapes = [shape for zone in situation.zones for shape in zone.shapes]
    if not shapes or any(shape.takes(*needs) for shape in shapes):
        return ""
    most = (
        max(shape.cpu_cores for shape in shapes),
        max(shape.memory_bytes for shape in shapes),
        max(shape.gpus for shape in shapes),
    )
    return (
        f"no node can take a pod of {_words(*needs)}; the most of any are {_words(*most)}; {_STILL}"
    )


def _words(cpu_cores: float, memory_bytes: float, gpus: float) -> str:
    return f"{cpu_cores:g} cores, {memory_bytes / _GIB:.3g} GiB and {gpus:g} GPUs"
