"""Builders for tests and demos: nodes and workloads with sensible defaults."""

from greensched_core.power.curves import PowerCurve
from greensched_core.power.hardware import Gpu
from greensched_core.state import Node, Workload

GIB = 2.0**30


def make_node(
    name: str = "n1",
    *,
    zone: str = "DE",
    cpu_cores: float = 32.0,
    gpu: Gpu | None = None,
    idle_w: float = 100.0,
    peak_w: float = 400.0,
    power_budget_w: float | None = None,
) -> Node:
    """Return a node whose power grows from `idle_w` to `peak_w` watts."""
    return Node(
        name=name,
        zone=zone,
        cpu_cores=cpu_cores,
        memory_bytes=128 * GIB,
        gpu=gpu,
        curve=PowerCurve.from_idle_and_peak(idle_w, peak_w),
        curve_source="annotation",
        hardware="test",
        power_budget_w=power_budget_w,
    )


def make_workload(
    name: str = "p1",
    *,
    namespace: str = "default",
    cpu_cores: float = 1.0,
    memory_bytes: float = GIB,
    gpus: float = 0.0,
    runtime_s: float | None = 3600.0,
) -> Workload:
    """Return a workload that requests `cpu_cores` and runs for `runtime_s` seconds."""
    return Workload(
        namespace=namespace,
        name=name,
        uid=f"uid-{namespace}-{name}",
        cpu_cores=cpu_cores,
        memory_bytes=memory_bytes,
        gpus=gpus,
        scheduler="greensched",
        runtime_s=runtime_s,
    )
