"""What a decision may look at: frozen nodes and workloads."""

from dataclasses import dataclass

from greensched_core.power.curves import PowerCurve


@dataclass(frozen=True, slots=True)
class Gpu:
    """The GPUs of one model on one node."""

    model: str
    count: int
    idle_w: float  # watts per GPU
    peak_w: float  # watts per GPU


@dataclass(frozen=True, slots=True)
class Node:
    """One machine: what it offers, what it draws, which grid feeds it."""

    name: str
    zone: str  # grid zone; "" when unknown
    cpu_cores: float  # allocatable
    memory_bytes: float  # allocatable
    gpu: Gpu | None
    curve: PowerCurve  # watts of the machine without its GPUs
    curve_source: str  # annotation, label, instance-type, cpu-model or default
    hardware: str  # name in the power catalogue
    speed: float = 1.0  # throughput per core relative to the reference core
    pue: float | None = None  # power usage effectiveness of its site; None: the setting
    power_budget_w: float | None = None  # hard limit on the predicted watts
    schedulable: bool = True  # not cordoned

    @property
    def gpu_count(self) -> int:
        """GPUs on this node."""
        return self.gpu.count if self.gpu else 0


@dataclass(frozen=True, slots=True)
class Workload:
    """One pod: what it asks for, how long, by when."""

    namespace: str
    name: str
    uid: str
    cpu_cores: float
    memory_bytes: float
    gpus: float
    scheduler: str = ""
    node: str = ""  # "" until bound
    is_finished: bool = False  # Succeeded or Failed: holds no resources
    runtime_s: float | None = None  # expected on the reference core; None: not said
    faults: tuple[str, ...] = ()  # what could not be read, in words
