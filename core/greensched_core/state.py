"""The inputs of a decision: frozen nodes and workloads."""

from dataclasses import dataclass

from greensched_core.power.curves import PowerCurve
from greensched_core.power.hardware import Gpu


@dataclass(frozen=True, slots=True)
class Node:
    """One machine: its capacity, its power, and its grid zone."""

    name: str
    zone: str  # grid zone; "" when unknown
    cpu_cores: float  # allocatable
    memory_bytes: float  # allocatable
    gpu: Gpu | None
    curve: PowerCurve  # watts of the machine without its GPUs
    curve_source: str  # annotation, label, instance-type, cpu-model or default
    hardware: str  # name in the power catalogue
    speed: float = 1.0  # throughput per core relative to the reference core
    pue: float | None = None  # power usage effectiveness of its site; None: `default_pue`
    power_budget_w: float | None = None  # hard limit on the predicted watts
    schedulable: bool = True  # not cordoned

    @property
    def gpu_count(self) -> int:
        """The number of GPUs on this node."""
        return self.gpu.count if self.gpu else 0


@dataclass(frozen=True, slots=True)
class Workload:
    """One pod: its requests, its state, and its runtime."""

    namespace: str
    name: str
    uid: str
    cpu_cores: float
    memory_bytes: float
    gpus: float
    scheduler: str = ""
    node: str = ""  # "" until bound
    is_finished: bool = False  # Succeeded or Failed: holds no resources
    runtime_s: float | None = None  # expected on the reference core; None: unknown
    faults: tuple[str, ...] = ()  # a sentence for each value that could not be read
