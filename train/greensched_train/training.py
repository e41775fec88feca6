"""A training, from its configuration or its last checkpoint to its best parameters."""

import time
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

import numpy as np

from greensched_core.errors import BadInput
from greensched_train.checkpoints import CHECKPOINT, Progress, Validated, save, saved
from greensched_train.data_split import TRAINING, VALIDATION
from greensched_train.evolution import first_state, generation_of, next_state
from greensched_train.residual_nets import NetParameters, ResidualNets
from greensched_train.training_config import TrainingConfig
from greensched_train.world_pool import ParameterTrial, WorldPool, processes

# Nets have single precision. Of parameters one of which is no number, this is false too.
_GREATEST = float(np.finfo(np.float32).max)

TrainingCallback = Callable[[Progress], None]  # called after each generation


def run_training(
    config: TrainingConfig,
    folder: Path,
    on_progress: TrainingCallback,
    process_count: int | None = None,
) -> Progress:
    """Train until the last generation, and return what was found; go on from a checkpoint.

    The result is the same to the last bit with any number of processes, and however often the
    training was interrupted. Raises BadInput for a folder of another training, for data sets that
    are not there, if nothing can be written, and if parameters are no numbers any more.
    """
    nets = ResidualNets(config.hidden)
    folder.mkdir(parents=True, exist_ok=True)
    progress = saved(config, folder)
    with processes(process_count) as executor:
        pool = WorldPool(nets, config.price_of_misses, executor)
        if progress is None:
            initial = nets.initial(np.random.default_rng([config.seed]))
            progress = Progress(first_state(initial), initial)
            _step(progress, config, pool, folder, on_progress, _validate)
        while progress.state.generation < config.method.generations:
            _step(progress, config, pool, folder, on_progress, _evolve)
    return progress


def _step(
    progress: Progress,
    config: TrainingConfig,
    pool: WorldPool,
    folder: Path,
    on_progress: TrainingCallback,
    do: Callable[[Progress, TrainingConfig, WorldPool], None],
) -> None:
    """Do one step, save what came of it, and tell."""
    began_s = time.perf_counter()
    do(progress, config, pool)
    progress.seconds += time.perf_counter() - began_s
    if not np.abs(progress.state.parameters).max() <= _GREATEST:
        raise BadInput(
            f"generation {progress.state.generation} gave parameters that are no numbers: "
            f"{folder / CHECKPOINT} has the generation before; try a lower learning_rate or "
            "deviation"
        )
    save(progress, config, folder)
    on_progress(progress)


def _evolve(progress: Progress, config: TrainingConfig, pool: WorldPool) -> None:
    """Make one generation, and validate if it is time to."""
    method = config.method
    ran = generation_of(progress.state, method, config.seed)
    source = str(config.worlds.training or TRAINING.name)
    trials = [
        ParameterTrial(each, source, world) for each in ran.parameters for world in ran.worlds
    ]
    scores = [each.objective for each in pool.scores(trials)]
    objective = np.array(scores).reshape(len(ran.parameters), len(ran.worlds))
    progress.state = next_state(progress.state, ran, objective, method)
    progress.objectives.append(float(objective.mean()))
    done = progress.state.generation
    if done % config.validation.every == 0 or done == method.generations:
        _validate(progress, config, pool)


def _validate(progress: Progress, config: TrainingConfig, pool: WorldPool) -> None:
    """Score the mean parameters in the worlds of validation; keep them if they are the best."""
    found = validated(progress.state.mean, progress.state.generation, config, pool)
    best = min((each.objective for each in progress.validated), default=np.inf)
    progress.validated.append(found)
    if found.objective < best:
        progress.best, progress.best_at = progress.state.mean, found.generation


def validated(
    parameters: NetParameters, generation: int, config: TrainingConfig, pool: WorldPool
) -> Validated:
    """Return how good parameters are in the worlds of validation."""
    seeds = range(config.validation.worlds)
    source = str(config.worlds.validation or VALIDATION.name)
    scores = pool.scores([ParameterTrial(parameters, source, seed) for seed in seeds])
    return Validated(
        generation,
        fmean(each.objective for each in scores),
        fmean(each.cost_ratio for each in scores),
        fmean(each.missed for each in scores),
        max(each.excess for each in scores),
    )
