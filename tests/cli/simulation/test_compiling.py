"""Whoever runs the simulator for the first time sees that it compiles, and for how long."""

import io
import re
import time

from rich.console import Console

from greensched_cli.simulation.compiling import compiling_shown


def shown(*, is_terminal: bool, ready_after_s: float) -> str:
    """Return what is printed while the engine is compiled."""
    text = io.StringIO()
    console = Console(file=text, force_terminal=is_terminal, width=100)
    ready_at = time.monotonic() + ready_after_s
    with compiling_shown(console, lambda: time.monotonic() >= ready_at, plain_every_s=0.05):
        time.sleep(max(ready_after_s, 0.0) + 0.2)
    return text.getvalue()


def test_nothing_is_said_of_what_was_compiled_before() -> None:
    assert shown(is_terminal=False, ready_after_s=-1.0) == ""


def test_elsewhere_than_on_a_terminal_lines_say_how_long_it_takes() -> None:
    first, *lines, last = shown(is_terminal=False, ready_after_s=0.3).splitlines()
    assert first.startswith("The simulator compiles its engine now, once: this takes a minute")
    assert any(re.fullmatch(r"compiling for \d+ s", line) for line in lines)
    assert re.fullmatch(r"compiled in \d+ s", last)


def test_a_terminal_shows_a_bar_with_the_time() -> None:
    text = shown(is_terminal=True, ready_after_s=0.3)
    assert "compiling" in text and "0:00:00" in text


def test_what_ends_before_it_is_compiled_ends_the_display() -> None:
    began = time.monotonic()
    text = io.StringIO()
    with compiling_shown(Console(file=text), lambda: False):
        pass
    assert time.monotonic() - began < 5.0
    assert "compiled in" not in text.getvalue()
