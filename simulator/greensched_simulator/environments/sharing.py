"""Work that threads share: who is through with some of it takes the next, in compiled code."""

from typing import Any

from numba import types
from numba.core.errors import TypingError
from numba.extending import intrinsic


@intrinsic
def _take(typing: Any, taken: Any, place: Any, count: Any) -> Any:
    if not (isinstance(taken, types.Array) and taken.dtype == types.int64):
        raise TypingError(f"an array of int64 is to be taken from, not {taken}")

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, given[0])
        number = builder.gep(array.data, [given[1]])
        return builder.atomic_rmw("add", number, given[2], "monotonic")

    return types.int64(taken, types.int64, types.int64), code


# Returns the number in a place of an array of int64, and adds a count to it, as one step: no two
# threads get the same. It waits for nobody, least of all for the interpreter's lock.
take: Any = _take
