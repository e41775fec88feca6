"""Trainings of language models as jobs: runtimes from parameters, tokens and GPUs."""

from collections.abc import Iterator, Sequence

import numpy as np

from greensched_core.durations import format_duration
from greensched_core.errors import BadInput
from greensched_policies.costs.cost import Floats
from greensched_simulator.arrays.seeds import stream
from greensched_simulator.scenario.cluster import NodeGroup
from greensched_simulator.scenario.language import Training
from greensched_simulator.scenario.language_models import (
    PEAK_BF16_FLOP_PER_S,
    TRAINING_FLOP,
    training_s,
    useful_flop_per_s,
)
from greensched_simulator.scenario.model import Scenario
from greensched_simulator.world.job_drafts import Draft
from greensched_simulator.world.node_power import power_of
from greensched_simulator.world.synthetic_jobs import arrivals_s

_LONGEST_S = 365 * 86_400.0  # grids are built until the last job could have ended
_ALIKE = 0.05  # no note for a smaller relative difference in speed


def trainings_of(scenario: Scenario, seed: int, notes: list[str]) -> Iterator[Draft]:
    """Yield the jobs of each kind of training in order of arrival, and add notes on their runtimes.

    Raises BadInput if nodes with the training's GPU differ in speed, if no node has it, or if a
    training takes longer than a year.
    """
    for training in scenario.workload.trainings:
        speed = speed_with(training.gpu, scenario.cluster.nodes)
        draft = _drafted(scenario, training, speed, seed)
        notes.append(_note(training))
        notes += _notes_on_other_gpus(training, speed, scenario.cluster.nodes)
        yield draft


def speed_with(gpu: str, groups: Sequence[NodeGroup]) -> float:
    """Return the speed of the nodes with a GPU; raise BadInput if they differ or there are none."""
    speeds = {
        group.name: power_of(group).speed
        for group in groups
        if group.gpus is not None and group.gpus.model == gpu
    }
    if not speeds:
        there = sorted({group.gpus.model for group in groups if group.gpus is not None})
        raise BadInput(f"no node has the GPU {gpu}; there are: {', '.join(there) or 'none'}")
    if len(set(speeds.values())) > 1:
        by_group = ", ".join(f"{name} {speed:.3g}" for name, speed in speeds.items())
        raise BadInput(
            f"nodes with {gpu} differ in speed ({by_group}), so the runtime would differ too: "
            f"give all these groups the same `speed`"
        )
    return next(iter(speeds.values()))


def _drafted(scenario: Scenario, training: Training, speed: float, seed: int) -> Draft:
    count, purpose = training.jobs, f"trainings/{training.name}"
    spread = stream(seed, f"{purpose}/tokens").standard_normal(count)
    tokens = training.tokens * np.exp(training.tokens_sigma * spread)
    # Jobs run for runtime / speed of their node, so on nodes with this GPU for the training's time.
    runtime_s = _takes_s(training, tokens) * speed
    longest_s = float(runtime_s.max()) / speed
    if longest_s > _LONGEST_S:
        raise BadInput(
            f"workload.trainings: {training.name} takes up to {format_duration(longest_s)}: give "
            "it more GPUs or workers, or fewer tokens, so that it ends within a year"
        )
    return Draft(
        names=tuple(f"{training.name}-{number}" for number in range(count)),
        after=((),) * count,
        arrival_s=arrivals_s(scenario, training, seed, count, f"{purpose}/arrivals"),
        runtime_s=runtime_s,
        expected_s=np.full(count, np.nan),
        cpu_cores=np.full(count, training.cpu_cores),
        memory_bytes=np.full(count, training.memory),
        gpus=np.full(count, float(training.gpus)),
        gpu_ratio=np.full(count, np.nan if training.gpu_ratio is None else training.gpu_ratio),
        workers=np.full(count, float(training.workers)),
        due_in_s=np.full(count, np.nan),
    )


def _takes_s(training: Training, tokens: Floats | float) -> Floats:
    gpus = training.gpus * training.workers
    flop_per_s = useful_flop_per_s(training.gpu, gpus, training.mfu)
    return np.asarray(training_s(training.model, 1.0, flop_per_s) * tokens)


def _note(training: Training) -> str:
    gpus = f"{training.gpus} {training.gpu}"
    if training.workers > 1:
        gpus = f"{training.workers} times {gpus}"
    median_s = float(_takes_s(training, training.tokens))
    flop = f"{TRAINING_FLOP * training.model * training.tokens:.3g}".replace("e+", "e")
    return (
        f"{training.name}: {training.jobs:,} trainings of {training.model / 1e9:.4g} billion "
        f"parameters; the median of {training.tokens / 1e9:.4g} billion tokens takes {flop} FLOPs, "
        f"{format_duration(median_s)} on {gpus} at {100 * training.mfu:g} % of their peak"
    )


def _notes_on_other_gpus(
    training: Training, speed: float, groups: Sequence[NodeGroup]
) -> Iterator[str]:
    """Yield a note for each group with another GPU whose speed does not match the GPUs' peaks."""
    own_peak = PEAK_BF16_FLOP_PER_S[training.gpu]
    for group in groups:
        if group.gpus is None or group.gpus.model == training.gpu:
            continue
        ratio = power_of(group).speed / speed
        peak = PEAK_BF16_FLOP_PER_S.get(group.gpus.model)
        if peak is None:
            by_peak = "no peak in BF16 is known for it"
        elif abs(ratio * own_peak / peak - 1) > _ALIKE:
            by_peak = f"its peak is {peak / own_peak:.3g} times as high: speed: "
            by_peak += f"{speed * peak / own_peak:.3g} would match"
        else:
            continue
        yield (
            f"{training.name} runs {ratio:.3g} times as fast on {group.name} ({group.gpus.model}) "
            f"as on {training.gpu}, by the nodes' speed; {by_peak}"
        )
