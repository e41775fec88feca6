"""Where machine code is kept: under the hash of what it was made from, in the user's cache folder.

An edit of a source compiles anew, and nothing stale is ever loaded; nor does it pile up. Checkouts
of the same sources share it.
"""

import hashlib
import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import UserProvidedCacheLocator
from platformdirs import user_cache_path

from greensched_simulator.compiling.compiled_sources import compiled_sources, is_ours

_KEPT_S = 30 * 86400.0


class ByContent(UserProvidedCacheLocator):
    """Finds the machine code of a source file of ours by what stands in it, not by where it is."""

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> Any:
        """Return where a function's machine code is; None for a file that is not ours."""
        if not is_ours(Path(py_file)):
            return None
        return super().from_function(py_func, py_file)  # type: ignore[no-untyped-call]  # numba has no types

    @classmethod
    def get_suitable_cache_subpath(cls, py_file: str) -> str:
        """Return the name of the folder for a file."""
        path = Path(py_file)
        return f"{path.stem}_{hashlib.sha256(path.read_bytes()).hexdigest()[:16]}"


# Of numba's own the one that keeps it in our folder too, by the file's path, and that of notebooks.
_LOCATORS = (f"{__name__}.ByContent", "UserProvidedCacheLocator", "IPythonCacheLocator")


def own_folder(folders: Path) -> Path:
    """Return where these sources' machine code is kept; drop what none has used for a month."""
    own = folders / _sources_digest()
    own.mkdir(parents=True, exist_ok=True)
    os.utime(own)
    for other in folders.iterdir():
        with suppress(FileNotFoundError):  # another process drops it too
            if time.time() - other.stat().st_mtime > _KEPT_S:
                shutil.rmtree(other, ignore_errors=True)
    return own


def _sources_digest() -> str:
    digest = hashlib.sha256(numba.__version__.encode())
    for path in compiled_sources():
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def keep_machine_code() -> None:
    """Have numba keep it there: to be called before any function is declared."""
    vars(numba.config)["CACHE_DIR"] = str(own_folder(user_cache_path("greensched") / "compiled"))
    vars(numba.config)["CACHE_LOCATOR_CLASSES"] = ",".join(_LOCATORS)
