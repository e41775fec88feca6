"""Arrays lent to compiled code: nobody there counts references to them.

Each count is an atomic operation, and a cluster, its jobs and their record are a hundred arrays.
Whoever lends keeps them for as long as they are used.
"""

from typing import Any

from numba import types
from numba.extending import intrinsic


def _unowned(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = array.meminfo.type(None)
        array.parent = array.parent.type(None)
        return array._getvalue()
    for place, each in enumerate(getattr(kind, "types", ())):  # of a tuple
        part = _unowned(context, builder, each, builder.extract_value(value, place))
        value = builder.insert_value(value, part, place)
    return value


def _lend(_context: Any, parts: Any) -> Any:
    """Return (tuples of) arrays that nobody counts references to: others keep them alive."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _unowned(context, builder, signature.args[0], args[0])

    return parts(parts), code


lent: Any = intrinsic(_lend)
