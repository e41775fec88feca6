"""NVIDIA's DCGM exporter: the watts of GPUs."""

from collections import defaultdict
from collections.abc import Mapping

from greensched_core.metering.meters.meter import BY_NODE, Answers, Meter, NodeMeter, node_named

_MOST_GPU_W = 3_000.0  # DCGM's blank values are near 2^63; no GPU draws this much


def _watts(answers: Answers) -> Mapping[str, float]:
    gpus: dict[tuple[str, str], float] = {}
    for sample in answers.get("dcgm", ()):
        node, watts = node_named(sample.labels), sample.value
        if node and 0 <= watts < _MOST_GPU_W:
            gpu = (node, sample.labels.get("UUID", ""))  # MIG and time-slicing repeat a GPU
            gpus[gpu] = max(gpus.get(gpu, 0.0), watts)
    nodes: dict[str, float] = defaultdict(float)
    for (node, _), watts in gpus.items():
        nodes[node] += watts
    return nodes


DCGM = Meter(
    gpus=NodeMeter(
        "dcgm",
        "DCGM: `DCGM_FI_DEV_POWER_USAGE`",
        {"dcgm": f"max by ({BY_NODE}, UUID) (DCGM_FI_DEV_POWER_USAGE < {_MOST_GPU_W:.0f})"},
        _watts,
    )
)
