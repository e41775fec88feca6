"""Plans many workloads in a thread, without searching all objects for garbage meanwhile."""

import asyncio
import gc
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


async def in_thread(function: Callable[P, R], *given: P.args, **named: P.kwargs) -> R:
    """Return what a function returns that takes a second of CPU time, as planning does.

    A thread keeps releases in time.
    """
    return await asyncio.to_thread(lambda: without_collection(function, *given, **named))


def without_collection(function: Callable[P, R], *given: P.args, **named: P.kwargs) -> R:
    """Return what a function returns; no garbage is collected until it has ended.

    A collection looks at all objects of the process, and planning makes many new ones.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return function(*given, **named)
    finally:
        if was_enabled:
            gc.enable()
