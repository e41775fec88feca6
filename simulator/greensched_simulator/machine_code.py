"""Whether the engine has to be compiled first, which takes a while."""

from pathlib import Path

import numba

from greensched_simulator.engine import run


def is_cached() -> bool:
    """Tell whether the engine's machine code, made from these very sources, is in the cache."""
    function = run.py_func  # type: ignore[attr-defined]  # numba's own
    files = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}-*.nbc"
    folder = Path(numba.config.CACHE_DIR)  # type: ignore[attr-defined]  # set by `compiled`
    return any(folder.rglob(files))
