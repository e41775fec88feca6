"""The policies' own functions, compiled: the engine runs what the live components run.

Beware: what a function writes to an array of a named tuple that it makes itself is lost (numba
0.68); let another function, which is given the tuple, write.

The policies are plain numpy, so that the images that serve carry no numba. Here their functions
are compiled as they stand, each with its helpers. Machine code is kept in the user's cache folder,
under the hash of all sources that it was made from: an edit compiles anew, and nothing stale is
ever loaded.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, cast

import numba
from numba import njit
from platformdirs import user_cache_path

import greensched_policies

_POLICIES, _ENGINE = Path(greensched_policies.__path__[0]), Path(__file__).parent


def _sources_digest() -> str:
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted((*_POLICIES.glob("*.py"), *_ENGINE.glob("*.py"))):
        source = path.read_bytes()
        if path.parent == _POLICIES or __name__.encode() in source:  # what is compiled says so
            digest.update(path.name.encode() + source)
    return digest.hexdigest()[:16]


# numba reads it when a function is declared, so it is set before any is.
_folder = user_cache_path("greensched") / "compiled" / _sources_digest()
vars(numba.config)["CACHE_DIR"] = str(_folder)

F = TypeVar("F", bound=Callable[..., Any])

_done: dict[FunctionType, Callable[..., Any]] = {}


def fast(function: F) -> F:
    """Have a function of the engine compiled when it is first called, and kept for later runs."""
    return cast(F, njit(cache=True, error_model="numpy")(function))


def inlined(function: F) -> F:
    """As `fast`, and made a part of whatever calls it: handing over its arguments costs more."""
    return cast(F, njit(forceinline=True, error_model="numpy")(function))


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a policy function compiled by numba, together with all functions of ours it calls."""
    plain = cast(FunctionType, function)
    if plain not in _done:
        scope = dict(plain.__globals__)
        for name in plain.__code__.co_names:
            helper = scope.get(name)
            if isinstance(helper, FunctionType) and helper.__module__.startswith("greensched_"):
                scope[name] = compiled(helper)
        own = FunctionType(plain.__code__, scope, plain.__name__, plain.__defaults__)
        _done[plain] = fast(own)
    return _done[plain]


def callee(function: Callable[..., Any], *samples: Any) -> tuple[Callable[..., Any]]:
    """Return a function, compiled for arguments like `samples`, for the engine to call by address.

    Handed over in a tuple of one it is a value like any other: the engine is compiled once for all
    rules, apart from them. numba calls this experimental.
    """
    ready: Any = compiled(function)
    if not ready.signatures:
        ready.compile(tuple(numba.typeof(each) for each in samples))
        ready.disable_compile()
    return (ready,)
