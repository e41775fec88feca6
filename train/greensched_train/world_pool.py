"""Scores many parameters in many worlds, in processes; the same numbers with any number of them."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from threading import Thread
from types import TracebackType
from typing import Any, NamedTuple, Self

from greensched_core.errors import GreenSchedError
from greensched_train.residual_nets import NetParameters, ResidualNets
from greensched_train.scored_worlds import Score, scored_world

_TOGETHER = 8  # parameters that a process scores in a world, before another may help


class ParameterTrial(NamedTuple):
    """NetParameters of all heads to be scored in a world."""

    parameters: NetParameters
    source: str  # of worlds: see `scored_world`
    seed: int


class TrainingProcessDied(GreenSchedError):
    """A process that scored trials was killed from outside."""


class _InThisProcess(Executor):
    """Does all at once, where it is asked."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done = Future[Any]()
        done.set_result(fn(*args, **kwargs))
        return done


class WorldPool:
    """Processes that score trials; use it in a `with` statement."""

    def __init__(self, nets: ResidualNets, price_of_misses: float, processes: int | None) -> None:
        """Begin processes: one per core by default; with 0, this process does it all."""
        self._nets, self._price = nets, price_of_misses
        self._pool: Executor = _InThisProcess()
        if processes != 0:
            context = multiprocessing.get_context("spawn")
            count = processes or os.cpu_count()
            self._pool = ProcessPoolExecutor(count, context, begin_process)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:  # nobody waits for what still runs
            for child in multiprocessing.active_children():
                child.terminate()
        self._pool.shutdown(cancel_futures=True)

    def scores(self, trials: Sequence[ParameterTrial]) -> list[Score]:
        """Return the score of each trial, in their order.

        Raises BadInput as `scored_world`, and TrainingProcessDied if one was killed.
        """
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
        try:
            for key, own in groups.items():
                found |= zip(own, done[key].result(), strict=True)
        except BrokenProcessPool as fault:
            raise TrainingProcessDied(
                "a process of the training was killed, as the kernel does when memory is short: "
                "the same command goes on after the last generation; --processes 1 takes less"
            ) from fault
        return [found[place] for place in range(len(trials))]


def _scored(
    nets: ResidualNets, parameters: Sequence[NetParameters], source: str, seed: int, price: float
) -> list[Score]:
    world = scored_world(source, seed)
    return [world.score(nets.nets_of(each), price) for each in parameters]


def begin_process() -> None:
    """Use one core, leave Ctrl-C to the process that began this one, and end when that does."""
    os.environ["OMP_NUM_THREADS"] = "1"
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process if the one that began it was killed: nobody waits for its results."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
