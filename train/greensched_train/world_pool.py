"""Scores many parameters in many worlds, in processes; the same numbers with any number of them."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from threading import Thread
from typing import Any, NamedTuple

from greensched_core.errors import GreenSchedError
from greensched_train.residual_nets import NetParameters, ResidualNets
from greensched_train.scored_worlds import Score, scored_world

_TOGETHER = 8  # parameters that a process scores in a world, before another may help


class ParameterTrial(NamedTuple):
    """Parameters of all heads to be scored in a world."""

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
    """Scores trials by the processes of an executor."""

    def __init__(self, nets: ResidualNets, price_of_misses: float, executor: Executor) -> None:
        self._nets, self._price, self._pool = nets, price_of_misses, executor

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


@contextmanager
def processes(count: int | None) -> Iterator[Executor]:
    """Begin processes, one per core by default; with 0, this process does it all.

    What still runs when the block ends by an error, or an interruption, is ended too.
    """
    if count == 0:
        yield _InThisProcess()
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(count or os.cpu_count(), context, begin_process) as executor:
        try:
            yield executor
        except BaseException:
            for child in multiprocessing.active_children():
                child.terminate()
            executor.shutdown(cancel_futures=True)
            raise


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
