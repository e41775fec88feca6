"""Scores many parameters in many worlds, in processes; the same numbers with any number of them."""

import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from types import TracebackType
from typing import NamedTuple, Self

from greensched_train.residual_nets import NetParameters, ResidualNets
from greensched_train.scored_worlds import Score, scored_world

_TOGETHER = 8  # parameters that a process scores in a world, before another may help


class ParameterTrial(NamedTuple):
    """NetParameters of all heads to be scored in a world."""

    parameters: NetParameters
    source: str  # of worlds: see `scored_world`
    seed: int


class WorldPool:
    """Processes that score trials; use it in a `with` statement."""

    def __init__(self, nets: ResidualNets, price_of_misses: float, processes: int | None) -> None:
        self._nets, self._price = nets, price_of_misses
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(processes or os.cpu_count(), context, _limit_threads)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.shutdown(cancel_futures=True)

    def scores(self, trials: Sequence[ParameterTrial]) -> list[Score]:
        """Return the score of each trial, in their order. Raises BadInput as `scored_world`."""
        groups = dict[tuple[str, int, int], list[int]]()
        places = dict[tuple[str, int], int]()
        for place, trial in enumerate(trials):
            world = trial.source, trial.seed
            places[world] = places.get(world, -1) + 1
            groups.setdefault((*world, places[world] // _TOGETHER), []).append(place)
        done = {
            key: self._pool.submit(
                _scored, self._nets, [trials[place].parameters for place in own], key[0], key[1],
                self._price,
            )
            for key, own in groups.items()
        }  # fmt: skip
        found = dict[int, Score]()
        for key, own in groups.items():
            found |= zip(own, done[key].result(), strict=True)
        return [found[place] for place in range(len(trials))]


def _scored(
    nets: ResidualNets, parameters: Sequence[NetParameters], source: str, seed: int, price: float
) -> list[Score]:
    world = scored_world(source, seed)
    return [world.score(nets.nets_of(each), price) for each in parameters]


def _limit_threads() -> None:
    """Let each process use one core: there are as many processes as cores."""
    os.environ["OMP_NUM_THREADS"] = "1"
