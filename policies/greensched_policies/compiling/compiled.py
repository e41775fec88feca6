"""Compiles the policies' own functions, so that the engine runs what the live components run.

Beware of numba 0.68: if a function makes a named tuple and writes to its arrays, the writes are
lost. Pass the tuple to another function, and write there.

The policies are plain numpy, so that the serving images carry no numba. Here their functions are
compiled unchanged, each with its helpers. `code_cache` says where machine code is kept.
"""

import copy
from collections.abc import Callable, Sequence
from threading import Lock
from types import FunctionType
from typing import Any, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt
from numba import types
from numba.core.errors import NumbaError
from numba.extending import overload

from greensched_core.errors import BadInput
from greensched_policies.compiling.code_cache import keep_machine_code
from greensched_policies.compiling.linked import Linked
from greensched_policies.costs.cost import as_index, taken

TRIED = (2, 3)  # decisions and candidates in the trial call of a rule

keep_machine_code()

F = TypeVar("F", bound=Callable[..., Any])

# Compiled code calls these by name; `overload` gives their compiled versions.
_OVERLOADED = (as_index, taken)


@overload(as_index)
def _as_index(values: Any) -> Any:
    """Truncate a number as numpy truncates an array."""

    def of_array(values: Any) -> Any:
        return values.astype(np.int64)

    def of_number(values: Any) -> Any:
        return np.int64(values)

    return of_array if isinstance(values, types.Array) else of_number


@overload(taken)
def _taken(table: Any, index: Any) -> Any:
    """Take one value or many by non-negative indices; numba's own `take` is slow for one."""

    def many(table: Any, index: Any) -> Any:
        return table.take(index)

    def one(table: Any, index: Any) -> Any:
        return table[np.uintp(index)]

    return many if isinstance(index, types.Array) else one


_one_at_a_time = Lock()
_done: dict[tuple[FunctionType, Callable[[Any], Any]], Callable[..., Any]] = {}


# `nogil` releases the interpreter lock, so that threads run in parallel. `_nrt` says whether
# references are counted; without it a function would inherit the setting of its first caller.
_COUNTS: dict[str, Any] = {"error_model": "numpy", "nogil": True, "_nrt": True}
_BORROWS: dict[str, Any] = {"error_model": "numpy", "nogil": True, "_nrt": False}


def fast(function: F) -> F:
    """Compile a function of the engine on its first call, and cache it for later runs.

    It releases the interpreter lock, so that several threads may run it.
    """
    return cast(F, Linked(function, _COUNTS))


def borrowing(function: F) -> F:
    """Compile as `fast`, without counting references to arrays, each count an atomic operation.

    The function must not make an array, return one, or read or fill a list: numba refuses the first
    and the last, and a returned array would be freed while it is used.
    """
    return cast(F, Linked(function, _BORROWS))


def inlined(function: F) -> F:
    """Compile as `borrowing`, inlined: passing its arguments would cost more than its work."""
    return cast(F, Linked(function, _BORROWS | {"forceinline": True}))


def _by_address(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a second time as `fast`, for the engine alone.

    Calls from Python may add signatures. With two, a function has no address, and numba would
    compile the engine again for it.
    """
    return fast(function)


def compiled(function: Callable[..., Any], how: Callable[[Any], Any] = fast) -> Callable[..., Any]:
    """Return a policy function compiled by numba, together with all functions of ours it calls.

    Set `how` to `inlined` for functions that are called with numbers, node by node.
    """
    plain = cast(FunctionType, function)
    if plain in _OVERLOADED:
        return plain
    if (plain, how) not in _done:
        scope = dict(plain.__globals__)
        for name in plain.__code__.co_names:
            helper = scope.get(name)
            if isinstance(helper, FunctionType) and helper.__module__.startswith("greensched_"):
                scope[name] = compiled(helper, how)
        own = FunctionType(plain.__code__, scope, plain.__name__, plain.__defaults__)
        _done[plain, how] = how(own)
    return _done[plain, how]


def callee(
    function: Callable[..., Any], returned: npt.DTypeLike, *samples: Any
) -> tuple[Callable[..., Any]]:
    """Return a function, compiled for arguments like `samples`, for the engine to call by address.

    In a tuple of one it is an ordinary value, so that the engine is compiled once for all rules;
    numba calls this experimental. The samples hold as many decisions and candidates as TRIED.

    Raises BadInput if numba cannot compile the function, if it does not return a number of the type
    `returned` for each candidate, if it changes or returns a part of its input, and if it fails
    uncompiled: machine code does not check indices.
    """
    name = f"the rule {function.__name__} of {function.__module__}"
    wanted = types.Array(numba.from_dtype(np.dtype(returned)), 2, "C")
    with _one_at_a_time:
        ready: Any = cast(Linked, compiled(function, _by_address)).whole
        if not ready.signatures:
            try:
                ready.compile(tuple(numba.typeof(each) for each in samples))
            except NumbaError as fault:
                raise BadInput(f"numba cannot compile {name}: {fault}") from fault
            ready.disable_compile()
    kind = ready.nopython_signatures[0].return_type
    if kind != wanted:
        if isinstance(kind, types.Array) and kind.copy(layout="C") == wanted:
            raise _part_of_its_input(name)
        raise BadInput(f"{name} returns {kind}; it must return {wanted}")
    _try_as_it_stands(function, name, samples)
    costs = ready(*samples)
    if costs.shape != TRIED:
        raise BadInput(
            f"{name} returns {list(costs.shape)} for 2 decisions among 3 candidates; it must "
            f"return {list(TRIED)}, a number for each"
        )
    if np.isnan(costs).any():
        raise BadInput(f"{name} returns NaN where all candidates are alike; it must return numbers")
    return (ready,)


def _try_as_it_stands(function: Callable[..., Any], name: str, samples: Sequence[Any]) -> None:
    given = copy.deepcopy(samples)
    try:
        costs = function(*given)
    except Exception as fault:  # a user's rule may raise anything
        raise BadInput(f"{name} fails: {fault}") from fault
    if any(np.may_share_memory(costs, column) for column in _arrays_of(given)):
        raise _part_of_its_input(name)
    if not all(map(np.array_equal, _arrays_of(given), _arrays_of(samples))):
        raise BadInput(f"{name} changes its input: make it work on a .copy()")


def _part_of_its_input(name: str) -> BadInput:
    return BadInput(f"{name} returns a part of its input: return a .copy()")


def _arrays_of(samples: Sequence[Any]) -> list[Any]:
    columns = [each if isinstance(each, tuple) else (each,) for each in samples]
    return [column for each in columns for column in each]
