"""The cache of machine code: in the user's cache folder, keyed by a hash of the sources.

An edited source is compiled again, so stale code is never loaded. Unused code is deleted after a
month. Checkouts with the same sources share the cache.
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

from greensched_policies.compiling.compiled_sources import compiled_sources, is_our_source

_KEPT_S = 30 * 86400.0


class ByContent(UserProvidedCacheLocator):
    """Finds the machine code of our source files by their content, not by their path."""

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> Any:
        """Return the locator of a function's machine code; None for a file that is not ours."""
        if not is_our_source(Path(py_file)):
            return None
        return super().from_function(py_func, py_file)

    @classmethod
    def get_suitable_cache_subpath(cls, py_file: str) -> str:
        """Return the name of a file's folder in the cache."""
        path = Path(py_file)
        return f"{path.stem}_{hashlib.sha256(path.read_bytes()).hexdigest()[:16]}"


# Of numba's own locators: the one by file path, which also uses our folder, and that of notebooks.
_LOCATORS = (f"{__name__}.ByContent", "UserProvidedCacheLocator", "IPythonCacheLocator")


def own_folder(folders: Path) -> Path:
    """Return the folder for these sources' machine code; delete folders unused for a month."""
    own = folders / _sources_digest()
    own.mkdir(parents=True, exist_ok=True)
    os.utime(own)
    for other in folders.iterdir():
        with suppress(FileNotFoundError):  # another process may delete it too
            if time.time() - other.stat().st_mtime > _KEPT_S:
                shutil.rmtree(other, ignore_errors=True)
    return own


def _sources_digest() -> str:
    digest = hashlib.sha256(numba.__version__.encode())
    for path in compiled_sources():
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def keep_machine_code() -> None:
    """Set numba's cache folder; call this before declaring any compiled function."""
    vars(numba.config)["CACHE_DIR"] = str(own_folder(user_cache_path("greensched") / "compiled"))
    vars(numba.config)["CACHE_LOCATOR_CLASSES"] = ",".join(_LOCATORS)
