"""Whether numba must compile the engine first, which takes minutes."""

from typing import Any

from greensched_simulator.engine.engine import run


def is_cached(function: Any = run) -> bool:
    """Return whether the machine code of a function, by default the engine, is in numba's cache.

    Code compiled before a source file changed does not count; numba's index excludes it.
    """
    return bool(function.whole._cache._cache_file._load_index())
