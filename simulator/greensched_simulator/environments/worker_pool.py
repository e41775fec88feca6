"""Threads that help with steps: between steps they poll for a moment before they sleep.

Waking a thread takes long compared with a step.
"""

import threading
import time
import weakref
from collections.abc import Callable

import numpy as np

from greensched_policies.costs.cost import Integers
from greensched_simulator.environments.sharing import IDLE, SLEEPS, announce_step

_LAST_STEP_S = 10.0  # longest wait for a thread's last step
_MOMENT_S = 1e-4


class WorkerPool:
    """Helpers that each call `help_with`, with their number from 1 on, whenever there is a step.

    `help_with` helps with the current step and those that follow, and returns when none has come
    for a while. A step does not wait for helpers that sleep.
    """

    def __init__(
        self, help_with: Callable[[int], object], helpers: int, counters: Integers
    ) -> None:
        self.counters, self._failed = counters, list[BaseException]()
        self.counters[:] = idle_counters(helpers)
        self._semaphores = [threading.Semaphore(0) for _ in range(helpers)]
        self._is_over = threading.Event()
        self._threads = [
            threading.Thread(
                target=_help,
                args=(help_with, own, semaphore, counters, self._is_over, self._failed),
                name=f"greensched-step-{own}",
                daemon=True,
            )
            for own, semaphore in enumerate(self._semaphores, 1)
        ]
        # Stops all threads if the pool is not closed, or if a thread cannot start.
        self._stop = weakref.finalize(self, _stop, self._is_over, self._semaphores)
        try:
            for thread in self._threads:
                thread.start()
        except RuntimeError:
            self._stop()
            raise

    def call(self) -> None:
        """Announce a step, and wake the helpers that sleep."""
        announce_step(self.counters)
        for place, semaphore in enumerate(self._semaphores, SLEEPS):
            if self.counters[place]:
                self.counters[place] = 0
                semaphore.release()

    def check(self) -> None:
        """Raise what a helper failed with."""
        if self._failed:
            raise self._failed[0]

    def wait(self) -> None:
        """Return when no helper is busy any longer, or one has failed."""
        while self.counters[IDLE] < len(self._semaphores) and not self._failed:
            time.sleep(_MOMENT_S)

    def close(self) -> None:
        """Stop all helpers."""
        self._stop()
        for thread in self._threads:
            thread.join(_LAST_STEP_S)


def idle_counters(helpers: int) -> Integers:
    """Return the counters of a pool before its first step."""
    counters = np.zeros(SLEEPS + helpers, np.int64)
    counters[IDLE] = helpers
    return counters


def _help(
    help_with: Callable[[int], object],
    own: int,
    semaphore: threading.Semaphore,
    counters: Integers,
    is_over: threading.Event,
    failed: list[BaseException],
) -> None:
    while True:
        counters[SLEEPS + own - 1] = 1
        semaphore.acquire()
        counters[SLEEPS + own - 1] = 0
        if is_over.is_set():
            return
        try:
            help_with(own)
        except BaseException as error:  # noqa: BLE001  # the caller of the step raises it
            failed.append(error)
            return


def _stop(is_over: threading.Event, semaphores: list[threading.Semaphore]) -> None:
    is_over.set()
    for semaphore in semaphores:
        semaphore.release()
