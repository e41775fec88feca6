"""Shows progress while the simulator's engine compiles, which happens once."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from greensched_simulator.runs.machine_code import is_cached

_SENTENCE = (
    "The simulator compiles its engine now, once: this takes a minute or two. "
    "Each rule is compiled when it is first used, which takes some seconds more."
)
_LOOK_EVERY_S, _PLAIN_EVERY_S = 0.5, 20.0


@contextmanager
def compiling_shown(
    console: Console,
    is_ready: Callable[[], bool] = is_cached,
    *,
    plain_every_s: float = _PLAIN_EVERY_S,
) -> Iterator[None]:
    """Show that code in the block compiles the engine, and the time it has taken so far.

    Prints a bar on a terminal, a line now and then elsewhere, and nothing if it is compiled.
    """
    if is_ready():
        yield
        return
    console.print(_SENTENCE)
    is_over = Event()
    showing = Thread(target=_show, args=(console, is_ready, is_over, plain_every_s))
    showing.start()
    try:
        yield
    finally:
        is_over.set()
        showing.join()


def _show(
    console: Console, is_ready: Callable[[], bool], is_over: Event, plain_every_s: float
) -> None:
    began = printed_at = time.monotonic()
    bar = Progress(
        TextColumn("compiling"), BarColumn(), TimeElapsedColumn(),
        console=console, transient=True, disable=not console.is_terminal,
    )  # fmt: skip
    with bar:
        bar.add_task("", total=None)
        while not is_ready():
            if is_over.wait(min(_LOOK_EVERY_S, plain_every_s)):
                return
            now = time.monotonic()
            if not console.is_terminal and now - printed_at >= plain_every_s:
                console.print(f"compiling for {now - began:.0f} s")
                printed_at = now
    console.print(f"compiled in {time.monotonic() - began:.0f} s")
