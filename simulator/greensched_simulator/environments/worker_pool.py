"""Threads that help with steps: between two they look out for a moment, and only then sleep.

To wake a thread takes long beside a step.
"""

import threading
import time
import weakref
from collections.abc import Callable

import numpy as np

from greensched_policies.costs.cost import Integers
from greensched_simulator.environments.sharing import IDLE, SLEEPS, tell_step

_LAST_STEP_S = 10.0  # is waited for
_MOMENT_S = 1e-4


class WorkerPool:
    """Helpers that each call `help_with`, with their number from 1 on, whenever there is a step.

    `help_with` helps with the step that there is and with those that follow, and returns when none
    has come for a while. Who sleeps through a step is not waited for.
    """

    def __init__(
        self, help_with: Callable[[int], object], helpers: int, counters: Integers
    ) -> None:
        self.counters, self._failed = counters, list[BaseException]()
        self.counters[:] = idle_counters(helpers)
        self._bells = [threading.Semaphore(0) for _ in range(helpers)]
        self._is_over = threading.Event()
        self._threads = [
            threading.Thread(
                target=_help,
                args=(help_with, own, bell, counters, self._is_over, self._failed),
                name=f"greensched-step-{own}",
                daemon=True,
            )
            for own, bell in enumerate(self._bells, 1)
        ]
        # Whoever forgets to close it leaves no thread behind, nor does a thread that cannot start.
        self._stop = weakref.finalize(self, _stop, self._is_over, self._bells)
        try:
            for thread in self._threads:
                thread.start()
        except RuntimeError:
            self._stop()
            raise

    def call(self) -> None:
        """Tell all that there is a step."""
        tell_step(self.counters)
        for place, bell in enumerate(self._bells, SLEEPS):
            if self.counters[place]:
                self.counters[place] = 0
                bell.release()

    def check(self) -> None:
        """Raise what a helper failed with."""
        if self._failed:
            raise self._failed[0]

    def wait(self) -> None:
        """Return when no worker is busy any longer, or one has failed."""
        while self.counters[IDLE] < len(self._bells) and not self._failed:
            time.sleep(_MOMENT_S)

    def close(self) -> None:
        """Send all home."""
        self._stop()
        for thread in self._threads:
            thread.join(_LAST_STEP_S)


def idle_counters(helpers: int) -> Integers:
    """Return the counters of a pool that has not begun."""
    counters = np.zeros(SLEEPS + helpers, np.int64)
    counters[IDLE] = helpers
    return counters


def _help(
    help_with: Callable[[int], object],
    own: int,
    bell: threading.Semaphore,
    counters: Integers,
    is_over: threading.Event,
    failed: list[BaseException],
) -> None:
    while True:
        counters[SLEEPS + own - 1] = 1
        bell.acquire()
        counters[SLEEPS + own - 1] = 0
        if is_over.is_set():
            return
        try:
            help_with(own)
        except BaseException as error:  # noqa: BLE001  # whoever waits for the step raises it
            failed.append(error)
            return


def _stop(is_over: threading.Event, bells: list[threading.Semaphore]) -> None:
    is_over.set()
    for bell in bells:
        bell.release()
