"""Work sharing between threads in compiled code: an idle thread takes the next part of the work.

Threads communicate by counters.
"""

from typing import Any

from numba import types
from numba.core.errors import TypingError
from numba.extending import intrinsic

from greensched_policies.compiling.compiled import fast, inlined
from greensched_policies.costs.cost import Integers

# Indices of the counters: number of steps, number of idle helpers, and from SLEEPS on 1 for each
# helper that sleeps.
STEPS, IDLE, SLEEPS = range(3)
_LOOKS = 100_000  # each takes at least 2 ns


@intrinsic
def _take(typing: Any, taken: Any, place: Any, count: Any) -> Any:
    if not (isinstance(taken, types.Array) and taken.dtype == types.int64):
        raise TypingError(f"the array must be of int64, not of {taken}")

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, given[0])
        number = builder.gep(array.data, [given[1]])
        return builder.atomic_rmw("add", number, given[2], "seq_cst")

    return types.int64(taken, types.int64, types.int64), code


# Atomic fetch-and-add: returns the number at an index of an int64 array, and adds a count to it. It
# never waits, not even for the interpreter's lock.
take_share: Any = _take


@fast
def announce_step(counters: Integers) -> None:
    """Announce a step to all threads; a thread that sees it also sees all earlier writes."""
    take_share(counters, STEPS, 1)


@inlined
def reaches(counters: Integers, place: int, least: int) -> bool:
    """Return whether a counter reaches `least`; poll for some tenths of a millisecond at most."""
    for _ in range(_LOOKS):
        if take_share(counters, place, 0) >= least:
            return True
    return False
