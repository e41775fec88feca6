"""The suite: Jobs of fixed work, drawn from a seed, and the same for every strategy.

Work is an amount, not a time, so that a faster node completes it earlier. The time that a Job takes
on the reference core is an estimate, from which its runtime annotation and its deadline follow.
"""

import hashlib
import random
from dataclasses import asdict, dataclass, field
from enum import StrEnum

import msgspec

from greensched_core.errors import BadInput

MIB = 2**20
# busybox 1.35, `dd if=/dev/zero bs=1M count=400 | sha256sum` on one core of an AMD EPYC: 400 MiB in
# 2.6 to 2.7 seconds of CPU time. Busybox from 1.36 on is several times as fast with SHA-NI.
MIB_PER_CORE_S = 150.0
# 20 flops an interaction (NVIDIA's count) at about an A100's 10 Tflop/s; we have not run it.
BODIES = 262_144
ITERATIONS_PER_GPU_S = 10e12 / (20.0 * BODIES**2)
_CORES = (0.25, 0.5, 1.0, 2.0, 4.0)
_FILLED_MIB = (64, 128, 256, 512, 1024)
_PROGRAM_MEMORY = 64 * MIB  # what the programs themselves need
_EVERY_DEADLINE = 3  # one in three Jobs without GPU has a deadline
_EVERY_MEMORY = 4  # one in four Jobs without GPU fills memory
_SHARE_OF_NODE = 0.5  # that a Job may request, so that it fits a node that has other pods
_SPARE_S = 60.0  # time in a deadline for pulling an image, schedulers and kubelets


class StressKind(StrEnum):
    """The resource that a Job stresses."""

    CPU = "cpu"
    MEMORY = "memory"
    GPU = "gpu"


@dataclass(frozen=True, slots=True)
class StressJob:
    """One Job: its arrival, its requests, and the amount of its work."""

    name: str
    kind: StressKind
    arrival_s: float
    cores: float
    memory_bytes: int
    gpus: int
    work: int  # cpu: MiB that each core hashes; memory: times the fill is hashed; gpu: iterations
    runtime_s: float  # expected on the reference core or GPU
    fill_mib: int = 0  # memory: amount that is filled
    deadline_s: float | None = None  # seconds from its creation


@dataclass(frozen=True, slots=True)
class Room:
    """The least that each node that takes work has, and whether any node has GPUs."""

    cores: float
    memory_bytes: float
    has_gpus: bool = False


@dataclass(frozen=True, slots=True)
class SuiteOptions:
    """The size of a suite.

    span_s: time within which its Jobs arrive. runtime_s: their mean runtime on the reference core.
    wait_s: how long a Job with a deadline may wait. gpu_jobs: how many of the Jobs use a GPU.
    """

    jobs: int = 12
    seed: int = 1
    span_s: float = 120.0
    runtime_s: float = 90.0
    wait_s: float = 600.0
    gpu_jobs: int = 0


@dataclass(frozen=True, slots=True)
class Suite:
    """The work, by arrival."""

    jobs: tuple[StressJob, ...]
    options: SuiteOptions = field(default_factory=SuiteOptions)

    @property
    def digest(self) -> str:
        """Return a hash of the Jobs: suites of one digest are the same work."""
        encoded = msgspec.json.encode([asdict(job) for job in self.jobs])
        return hashlib.sha256(encoded).hexdigest()[:12]

    @property
    def core_seconds(self) -> float:
        """CPU time on the reference core."""
        return sum(job.cores * job.runtime_s for job in self.jobs)


def make_suite(options: SuiteOptions, room: Room) -> Suite:
    """Return the suite of a seed for nodes of this size; the same arguments give the same suite.

    Raises BadInput if no Job fits, or if GPU Jobs are requested and no node has a GPU.
    """
    cores = [each for each in _CORES if each <= room.cores * _SHARE_OF_NODE]
    fills = [
        each
        for each in _FILLED_MIB
        if each * MIB + _PROGRAM_MEMORY <= room.memory_bytes * _SHARE_OF_NODE
    ]
    if not cores or not fills:
        raise BadInput(
            f"no stress Job fits: the smallest node offers {room.cores:g} cores and "
            f"{room.memory_bytes / MIB:.0f} MiB; it needs {_CORES[0] / _SHARE_OF_NODE:g} and "
            f"{(_FILLED_MIB[0] + _PROGRAM_MEMORY / MIB) / _SHARE_OF_NODE:.0f}"
        )
    if options.gpu_jobs and not room.has_gpus:
        raise BadInput("--gpu-jobs: no node offers nvidia.com/gpu")
    draw = random.Random(options.seed)
    arrivals = sorted(draw.uniform(0.0, options.span_s) for _ in range(options.jobs))
    on_gpus = set(draw.sample(range(options.jobs), min(options.gpu_jobs, options.jobs)))
    jobs: list[StressJob] = []
    plain = 0
    for place, arrival_s in enumerate(arrivals):
        runtime_s = options.runtime_s * draw.uniform(0.5, 1.5)
        if place in on_gpus:
            jobs.append(_on_gpu(place, arrival_s, runtime_s))
            continue
        wait_s = options.wait_s if plain % _EVERY_DEADLINE == 0 else None
        if plain % _EVERY_MEMORY == _EVERY_MEMORY - 1:
            one = min(1.0, cores[-1])
            jobs.append(_of_memory(place, arrival_s, runtime_s, one, draw.choice(fills), wait_s))
        else:
            jobs.append(_of_cpu(place, arrival_s, runtime_s, draw.choice(cores), wait_s))
        plain += 1
    return Suite(tuple(jobs), options)


def _of_cpu(
    place: int, arrival_s: float, runtime_s: float, cores: float, wait_s: float | None
) -> StressJob:
    rate = MIB_PER_CORE_S * min(cores, 1.0)  # less than one core runs one hash, more slowly
    work = max(1, round(runtime_s * rate))
    expected_s = work / rate
    return StressJob(
        f"cpu-{place}", StressKind.CPU, round(arrival_s, 3), cores, _PROGRAM_MEMORY, 0, work,
        round(expected_s, 3), deadline_s=_deadline_s(expected_s, wait_s),
    )  # fmt: skip


def _of_memory(
    place: int,
    arrival_s: float,
    runtime_s: float,
    cores: float,
    fill_mib: int,
    wait_s: float | None,
) -> StressJob:
    pass_s = fill_mib / (MIB_PER_CORE_S * cores)
    passes = max(1, round(runtime_s / pass_s))
    return StressJob(
        f"memory-{place}", StressKind.MEMORY, round(arrival_s, 3), cores,
        fill_mib * MIB + _PROGRAM_MEMORY, 0, passes, round(passes * pass_s, 3), fill_mib,
        _deadline_s(passes * pass_s, wait_s),
    )  # fmt: skip


def _on_gpu(place: int, arrival_s: float, runtime_s: float) -> StressJob:
    iterations = max(1, round(runtime_s * ITERATIONS_PER_GPU_S))
    return StressJob(
        f"gpu-{place}", StressKind.GPU, round(arrival_s, 3), 1.0, 1024 * MIB, 1, iterations,
        round(iterations / ITERATIONS_PER_GPU_S, 3),
    )  # fmt: skip


def _deadline_s(runtime_s: float, wait_s: float | None) -> float | None:
    """Return the deadline, counted from creation; a slow node may take twice the runtime."""
    return None if wait_s is None else round(wait_s + 2.0 * runtime_s + _SPARE_S, 3)
