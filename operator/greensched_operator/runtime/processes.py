"""The life cycle of an operator process: tasks start, run until stopped, and end."""

import asyncio
import signal
from collections.abc import Coroutine, Mapping
from typing import Any

import structlog

from greensched_core.errors import TaskEnded

log = structlog.get_logger()


def stop_on_signals() -> asyncio.Event:
    """Return an event that SIGTERM and SIGINT set."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop


class Tasks:
    """The named tasks of a process; a task that ends by itself has failed."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []
        self._failed: list[str] = []
        self._is_stopping = False
        self.failed = asyncio.Event()

    def start(self, work: Mapping[str, Coroutine[Any, Any, None]]) -> None:
        """Start each coroutine as a task with the given name."""
        for name, each in work.items():
            task = asyncio.create_task(each, name=name)
            task.add_done_callback(self._ended)
            self._tasks.append(task)

    def alive(self) -> str:
        """Return "" while every task runs, else which ones ended; only a bug ends a task."""
        ended = [task.get_name() for task in self._tasks if task.done()]
        return f"ended: {', '.join(ended)}" if ended else ""

    async def stop(self) -> None:
        """Cancel all tasks and wait for them."""
        self._is_stopping = True
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def raise_failed(self) -> None:
        """Raise TaskEnded if a task ended before `stop`."""
        if self._failed:
            raise TaskEnded(f"ended: {', '.join(self._failed)}")

    def _ended(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or self._is_stopping:
            return
        self._failed.append(task.get_name())
        fault = task.exception()
        log.error("a task ended unexpectedly", task=task.get_name(), exc_info=fault)
        self.failed.set()
