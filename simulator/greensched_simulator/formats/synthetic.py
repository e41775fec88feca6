"""A synthetic workload; equal seeds give equal tasks."""

import math
import random
from dataclasses import dataclass

from greensched_core.errors import BadInput
from greensched_simulator.formats.workload import Task, Trace

_GIB = 2.0**30
_DAY_S = 86_400.0
_SHORTEST_S, _LONGEST_S = 30.0, 86_400.0


@dataclass(frozen=True, slots=True)
class SyntheticShape:
    """The distributions of the tasks.

    The defaults roughly follow the Alibaba and Microsoft GPU traces: runtimes over several orders
    of magnitude, most tasks small (Weng et al., MLaaS in the Wild, NSDI 2022, figures 5 and 6).
    """

    median_runtime_s: float = 1_200.0
    runtime_sigma: float = 1.2  # of the logarithm
    gpu_share: float = 0.25  # of all tasks
    daily_swing: float = 0.5  # arrivals peak at 14 h, at (1 + this) times their mean
    cpu_cores: tuple[float, ...] = (1.0, 2.0, 2.0, 4.0, 4.0, 8.0)
    memory_gib_per_core: tuple[float, ...] = (2.0, 4.0, 4.0, 8.0)
    gpus: tuple[int, ...] = (1, 1, 1, 1, 2, 4)


def synthetic_trace(
    count: int, span_s: float, seed: int, shape: SyntheticShape | None = None
) -> Trace:
    """Return `count` tasks that arrive within `span_s` as a Poisson process with a daily wave.

    Given their number, the arrivals of such a process are independent draws from its rate, sorted.
    Raises BadInput unless count and span are positive and the shape's shares are within 0 to 1.
    """
    shape = shape or SyntheticShape()
    if count < 1 or not 0 < span_s < math.inf:
        raise BadInput(f"count is {count} and span_s {span_s}: both must be positive")
    if not (0 <= shape.gpu_share <= 1 and 0 <= shape.daily_swing <= 1):
        raise BadInput("gpu_share and daily_swing must be within 0 to 1")
    chance = random.Random(seed)
    arrivals = sorted(_arrival(chance, span_s, shape.daily_swing) for _ in range(count))
    tasks = tuple(
        _task(chance, f"task-{index}", arrival, shape) for index, arrival in enumerate(arrivals)
    )
    return Trace(tasks, f"synthetic, seed {seed}", ("the workload is synthetic",))


def _arrival(chance: random.Random, span_s: float, swing: float) -> float:
    """Draw from the rate 1 + swing·cos(2π(t − 14 h)/day) on 0..span, by rejection."""
    while True:
        time_s = chance.uniform(0.0, span_s)
        rate = 1.0 + swing * math.cos(2 * math.pi * (time_s / _DAY_S - 14 / 24))
        if chance.uniform(0.0, 1.0 + swing) <= rate:
            return time_s


def _task(chance: random.Random, name: str, arrival_s: float, shape: SyntheticShape) -> Task:
    runtime_s = chance.lognormvariate(math.log(shape.median_runtime_s), shape.runtime_sigma)
    gpus = chance.choice(shape.gpus) if chance.random() < shape.gpu_share else 0
    cores = chance.choice(shape.cpu_cores) * max(1, gpus)
    return Task(
        name=name,
        arrival_s=arrival_s,
        runtime_s=min(max(runtime_s, _SHORTEST_S), _LONGEST_S),
        cpu_cores=cores,
        memory_bytes=cores * chance.choice(shape.memory_gib_per_core) * _GIB,
        gpus=gpus,
    )
