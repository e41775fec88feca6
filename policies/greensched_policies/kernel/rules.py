"""The `when` rules, compiled, by their place, and policies outside the library by their address."""

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from greensched_policies.compiling.compiled import compiled, fast
from greensched_policies.library.functions import WHEN_BY_NUMBER
from greensched_policies.rules.catalogue import WHEN_RULES


def _choice_of(rules: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    """Return a function that calls the rule of a place."""
    first = rules[0]
    if len(rules) == 1:

        def last(place: int, slots: Any) -> Any:
            return first(slots)

        return fast(last)
    others = _choice_of(rules[1:])

    def choice(place: int, slots: Any) -> Any:
        if place == 0:
            return first(slots)
        return others(place - 1, slots)

    return fast(choice)


cost_by = _choice_of([compiled(WHEN_RULES[name]) for name in WHEN_BY_NUMBER])


def _ask(  # numba counts the parameters
    _context: Any, address: Any, place: Any, count: Any, seen_at: Any, cost_at: Any
) -> Any:
    """Return the type and the code of a call of the function at an address: see `functions.Ask`."""

    def code(_target: Any, builder: Any, _signature: Any, given: Any) -> Any:
        number = ir.IntType(64)
        function = ir.FunctionType(ir.VoidType(), [number] * 4)
        builder.call(builder.inttoptr(given[0], function.as_pointer()), given[1:])

    return types.void(*[types.int64] * 5), code


ask: Any = intrinsic(_ask)
