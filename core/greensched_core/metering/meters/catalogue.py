"""All meters, best first; a new meter is one file and one line here.

The first meter that has a node, its GPUs or a pod counts.
"""

from greensched_core.metering.meters.dcgm import DCGM
from greensched_core.metering.meters.greensched import GREENSCHED
from greensched_core.metering.meters.kepler import KEPLER
from greensched_core.metering.meters.kubelet import KUBELET
from greensched_core.metering.meters.meter import Meter, NodeMeter, PodMeter
from greensched_core.metering.meters.node_exporter import NODE_EXPORTER
from greensched_core.metering.meters.old_kepler import OLD_KEPLER
from greensched_core.metering.meters.scaphandre import SCAPHANDRE

METERS: tuple[Meter, ...] = (
    GREENSCHED,
    DCGM,
    KEPLER,
    OLD_KEPLER,
    SCAPHANDRE,
    NODE_EXPORTER,
    KUBELET,
)

NODE_METERS: tuple[NodeMeter, ...] = tuple(each for meter in METERS for each in meter.nodes)
GPU_METERS: tuple[NodeMeter, ...] = tuple(meter.gpus for meter in METERS if meter.gpus is not None)
POD_METERS: tuple[PodMeter, ...] = tuple(meter.pods for meter in METERS if meter.pods is not None)

# Sources that measure a whole machine with its GPUs: at the plug or the platform.
WHOLE_MACHINE = frozenset(meter.source for meter in NODE_METERS if meter.sees_gpus)
# Meters that only estimate.
ESTIMATING = frozenset(meter.name for meter in POD_METERS if meter.is_estimate)
