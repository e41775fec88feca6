"""The outputs of the controller's decisions."""

from dataclasses import dataclass

from greensched_operator.controller.recording import Recorder
from greensched_operator.writing.metrics import ControllerMetrics
from greensched_operator.writing.outbox import Outbox
from greensched_operator.writing.writing import Writer


@dataclass(frozen=True)
class Outputs:
    """What a decision passes through: it is queued, written on its workload, recorded, counted."""

    outbox: Outbox
    writer: Writer
    recorder: Recorder
    metrics: ControllerMetrics
