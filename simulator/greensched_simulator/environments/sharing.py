"""Work that threads share: who is through with some of it takes the next, in compiled code.

What they tell each other stands in counters.
"""

from typing import Any

from numba import types
from numba.core.errors import TypingError
from numba.extending import intrinsic

from greensched_policies.costs.cost import Integers
from greensched_simulator.compiling.compiled import fast, inlined

# Places of the counters: how many steps there were, and how many helpers are not busy with any;
# then, of each helper, whether it sleeps.
STEPS, IDLE, SLEEPS = range(3)
_LOOKS = 100_000  # each takes 2 ns and more


@intrinsic
def _take(typing: Any, taken: Any, place: Any, count: Any) -> Any:
    if not (isinstance(taken, types.Array) and taken.dtype == types.int64):
        raise TypingError(f"the array must be of int64, not of {taken}")

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, given[0])
        number = builder.gep(array.data, [given[1]])
        return builder.atomic_rmw("add", number, given[2], "seq_cst")

    return types.int64(taken, types.int64, types.int64), code


# Returns the number in a place of an array of int64, and adds a count to it, as one step: no two
# threads get the same. It never waits, least of all for the interpreter's lock.
take: Any = _take


@fast
def tell_step(counters: Integers) -> None:
    """Tell all that there is a step: whoever sees it sees all that was written before."""
    take(counters, STEPS, 1)


@inlined
def reaches(counters: Integers, place: int, least: int) -> bool:
    """Look at a number until it has reached another, for some tenths of a millisecond at most."""
    for _ in range(_LOOKS):
        if take(counters, place, 0) >= least:
            return True
    return False
