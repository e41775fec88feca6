"""Strategies: the scheduler of the suite's Jobs, and the annotations that the Jobs carry."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from greensched_core.errors import BadInput
from greensched_core.labels import SCHEDULER_NAME

_NAMED = "scheduler:"
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Strategy:
    """One way to run the suite."""

    name: str
    scheduler: str
    annotates_runtime: bool = False  # only Jobs that opt in carry our annotations
    annotates_deadline: bool = False  # if so, work may be held

    @property
    def namespace_part(self) -> str:
        """Return the name in a form that fits into a namespace's name."""
        return re.sub(r"[^a-z0-9]+", "-", self.name)[:30].strip("-")


DEFAULT = Strategy("default", "default-scheduler")
AT_ONCE = Strategy("greensched-at-once", SCHEDULER_NAME, annotates_runtime=True)
HELD = Strategy(SCHEDULER_NAME, SCHEDULER_NAME, annotates_runtime=True, annotates_deadline=True)
KNOWN = {each.name: each for each in (DEFAULT, AT_ONCE, HELD)}


def parse_strategies(text: str) -> tuple[Strategy, ...]:
    """Return the strategies of a list such as `default,greensched`; the first is the baseline.

    Raises BadInput for an unknown or repeated name, or an empty list.
    """
    names = [part.strip() for part in text.split(",") if part.strip()]
    if not names or len(set(names)) < len(names):
        raise BadInput(f"--strategies {text!r}: name each once, such as default,greensched")
    return tuple(map(_parse, names))


def _parse(name: str) -> Strategy:
    if name in KNOWN:
        return KNOWN[name]
    scheduler = name.removeprefix(_NAMED)
    if name.startswith(_NAMED) and len(scheduler) <= 63 and _NAME.fullmatch(scheduler):
        return Strategy(name, scheduler)
    raise BadInput(
        f"--strategies: {name!r} is not one of {', '.join(KNOWN)} or {_NAMED}NAME of a scheduler"
    )


def order_of(strategies: Sequence[Strategy], number: int) -> tuple[Strategy, ...]:
    """Return the strategies in the order of a round: they take turns to begin.

    This way no strategy profits from slow changes, such as the grid's over a day.
    """
    turn = number % len(strategies)
    return (*strategies[turn:], *strategies[:turn])
