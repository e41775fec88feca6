"""Where the controller's decisions go."""

from dataclasses import dataclass

from greensched_operator.controller.recording import Recorder
from greensched_operator.runtime.metrics import ControllerMetrics
from greensched_operator.writing.outbox import Outbox
from greensched_operator.writing.writing import Writer


@dataclass(frozen=True)
class Outputs:
    """A decision waits in the outbox, is written on its workload, recorded and counted."""

    outbox: Outbox
    writer: Writer
    recorder: Recorder
    metrics: ControllerMetrics
