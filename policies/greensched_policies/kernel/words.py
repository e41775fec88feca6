"""Eight bytes of a text at a time, as a whole number whose lowest bits are the first byte.

The tests of all eight at once are in Warren, "Hacker's Delight", 2nd edition, 2012, section 6-1.
Each gives the highest bit of every byte that passes. The lowest of these bits is right; above it,
a byte that follows one that passes may seem to pass too. Imports no other file of the kernel.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from greensched_policies.compiling.compiled import inlined

BYTES = 8  # of a word
_ONES = np.uint64(0x0101_0101_0101_0101)
_HIGHS = np.uint64(0x8080_8080_8080_8080)
_QUOTES, _BACKSLASHES, _DELETES = (_ONES * np.uint64(each) for each in (ord('"'), ord("\\"), 127))
_BLANKS = _ONES * np.uint64(ord(" "))
_ONE, _SEVEN, _LAST_BYTE = np.uint64(1), np.uint64(7), np.uint64(56)


def _load(_context: Any, text: Any, at: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, given[0]).data
        start = builder.gep(data, [given[1]])
        return builder.load(builder.bitcast(start, ir.IntType(64).as_pointer()), align=1)

    return types.uint64(text, types.intp), code


word_at: Any = intrinsic(_load)  # (text, at): the word that begins there; it must be in the text


@inlined
def quotes_in(word: np.uint64) -> np.uint64:
    """Return which bytes are quotes."""
    return _zeros_in(word ^ _QUOTES)


@inlined
def unplain_in(word: np.uint64) -> np.uint64:
    """Return which bytes are a backslash, or none that ASCII prints."""
    controls = (word - _BLANKS) & ~word & _HIGHS
    others = _zeros_in(word ^ _BACKSLASHES) | _zeros_in(word ^ _DELETES)
    return controls | others | (word & _HIGHS)


@inlined
def before_first(found: np.uint64) -> np.uint64:
    """Return a mask of the bytes before the first one that a test found; it found one."""
    return ((found & (~found + _ONE)) >> _SEVEN) - _ONE


@inlined
def up_to_first(found: np.uint64) -> np.uint64:
    """Return a mask of the bytes up to the first one that a test found; it found one."""
    return ((found & (~found + _ONE)) << _ONE) - _ONE


@inlined
def bytes_in(mask: np.uint64) -> int:
    """Return how many bytes a mask has, up to seven."""
    count: Any = np.int64(((mask & _ONES) * _ONES) >> _LAST_BYTE)
    return int(count)


@inlined
def _zeros_in(word: np.uint64) -> np.uint64:
    return (word - _ONES) & ~word & _HIGHS
