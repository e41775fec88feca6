"""Whether the engine has to be compiled first, which takes a while."""

from typing import Any

from greensched_simulator.engine import run


def is_cached() -> bool:
    """Tell whether this very engine's machine code is in the cache.

    That of other checkouts stands beside it, and what was made before a file was written anew does
    not count: numba's own index knows.
    """
    engine: Any = run
    return bool(engine.whole._cache._cache_file._load_index())
