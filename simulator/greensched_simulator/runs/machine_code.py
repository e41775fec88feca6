"""Whether something has to be compiled first, which takes a while."""

from typing import Any

from greensched_simulator.engine.engine import run


def is_cached(function: Any = run) -> bool:
    """Tell whether the machine code of a function, else of the whole engine, is in the cache.

    What was made before a file was written anew does not count: numba's own index knows.
    """
    return bool(function.whole._cache._cache_file._load_index())
