"""Alibaba's openb, github.com/alibaba/clusterdata, cluster-trace-gpu-v2023: one pod per row."""

from collections import Counter

from greensched_simulator.formats.trace_format import csv_format
from greensched_simulator.formats.trace_rows import Row
from greensched_simulator.formats.workload import Task

_MIB = 2.0**20


def _task(row: Row, notes: Counter[str]) -> Task:
    created = row.figure("creation_time", at_least=0)
    began = created
    if row.text("scheduled_time"):
        began = row.figure("scheduled_time", at_least=0)
    else:
        notes["never scheduled; the time from creation to deletion is used as runtime"] += 1
    runtime_s = row.figure("deletion_time", at_least=0) - began
    if runtime_s <= 0:
        row.fault(f"its runtime, from its start to deletion_time, is {runtime_s:g} s")
    gpus = row.whole("num_gpu")
    share = row.figure("gpu_milli", at_least=0)
    if gpus and not 0 < share <= 1000:
        row.fault(f"gpu_milli is {share:g}, not within 1 to 1000")
    elif gpus > 1 and share < 1000:
        row.fault(
            f"gpu_milli is {share:g} with {gpus} GPUs: less than 1000 is allowed only for "
            f"a single GPU"
        )
    return Task(
        name=row.name("name"),
        arrival_s=created,
        runtime_s=runtime_s,
        cpu_cores=row.figure("cpu_milli", above=0) / 1000,
        memory_bytes=row.figure("memory_mib", at_least=0) * _MIB,
        gpus=gpus,
        gpu_share=share / 1000 if gpus else 1.0,
        gpu_models=row.names("gpu_spec") if gpus else (),
    )


OPENB = csv_format(
    "openb",
    "[openb](#openb), Alibaba's cluster-trace-gpu-v2023",
    ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "creation_time", "deletion_time"),
    _task,
    layout="`name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time,…`",
)
