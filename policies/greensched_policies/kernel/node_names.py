"""The rows of the node names in a request, and the reply that scores them, byte by byte.

Decoding thousands of names and looking them up in a dict takes most of a large request's time,
nearly all of it cache misses.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from greensched_policies.compiling.compiled import borrowing, fast, inlined
from greensched_policies.costs.cost import Integers
from greensched_policies.kernel.seeing_nodes import are_within
from greensched_policies.library.functions import NOT_PLAIN
from greensched_policies.library.node_names import NAME_AT, NO_ROW, ONES_FROM_END

_Bytes = npt.NDArray[np.uint8]

_OPENS, _CLOSES, _QUOTE, _COMMA, _BACKSLASH = (ord(each) for each in '[]",\\')
_FIRST_PRINTABLE, _LAST_PRINTABLE = 32, 126
_ZERO, _BLANK = ord("0"), ord(" ")
_TAG_BITS = np.uint64(32)
_ROW_BITS = np.uint64(0xFFFF_FFFF)
_FREE = np.uint64(0)


class EntryNames(NamedTuple):
    """The entries of a prioritize reply by row, and a hash table of the names in them.

    A slot has 32 bits of its name's hash, and the row plus one; 0 is free. A name whose slot is
    taken has the next free one.
    """

    entries: _Bytes  # [E,W] each a name in quotes from NAME_AT - 1 on, and room for a score
    slots: npt.NDArray[np.uint64]  # [2^bits], more than there are names
    bits: int
    factor: np.uint64  # odd; chosen at random, so that nobody can choose names that share a slot


@borrowing
def hash_names(names: EntryNames, rows: Integers) -> None:
    """Enter the names of some rows into the hash table."""
    for row in rows:
        entry = names.entries[row]
        hashed, at = names.factor, NAME_AT
        while at < entry.size and entry[at] != _QUOTE:
            hashed = _with_byte(hashed, entry[at], names.factor)
            at += 1
        slot, last = _first_slot(hashed, names), names.slots.size - 1
        while names.slots[slot] != _FREE:
            slot = (slot + 1) & last
        names.slots[slot] = (hashed << _TAG_BITS) | np.uint64(row + 1)


@borrowing
def find_rows(names: EntryNames, text: _Bytes, rows: Integers, scratch: Integers) -> int:
    """Fill in the row of each name in a JSON array, [N], NO_ROW for an unknown one.

    Return how many are unknown, or NOT_PLAIN if the text is not a compact array of N plain names,
    as Go writes Kubernetes' names: in ASCII, and nothing escaped.

    It goes through all names step by step, with `scratch`, [3,N], as working memory. So the words
    of memory that a step reads are fetched together: after a pause few are in the cache.
    """
    begins, hashes, firsts = scratch[0], scratch[1], scratch[2]
    if not _read_names(text, names.factor, begins, hashes):
        return NOT_PLAIN
    for place in range(rows.size):
        slot = names.slots[_first_slot(np.uint64(hashes[place]), names)]
        rows[place] = np.int64(slot & _ROW_BITS) - 1
    for place in range(rows.size):
        if rows[place] != NO_ROW:
            firsts[place] = names.entries[rows[place], NAME_AT]
    unknown = 0
    for place in range(rows.size):
        begin = begins[place]
        if rows[place] == NO_ROW or not _has_name(names.entries[rows[place]], text, begin):
            rows[place] = _next_row(np.uint64(hashes[place]), names, text, begin)
            unknown += rows[place] == NO_ROW
    return unknown


@inlined
def _read_names(text: _Bytes, factor: Any, begins: Integers, hashes: Integers) -> bool:
    """Fill in where each name begins, and its hash; return whether the text is as it must be."""
    at, end = 1, text.size - 1
    if end < 1 or text[0] != _OPENS or text[end] != _CLOSES:
        return False
    for place in range(begins.size):
        if place > 0:
            if text[at] != _COMMA:
                return False
            at += 1
        if text[at] != _QUOTE:
            return False
        at += 1
        begins[place], hashed = at, factor
        while at < end and text[at] != _QUOTE:
            if not _FIRST_PRINTABLE <= text[at] <= _LAST_PRINTABLE or text[at] == _BACKSLASH:
                return False
            hashed = _with_byte(hashed, text[at], factor)
            at += 1
        if at >= end:
            return False
        at += 1
        hashes[place] = np.int64(hashed)
    return at == end


@fast
def _next_row(hashed: Any, names: EntryNames, text: _Bytes, begin: int) -> int:
    """Return the row of a name that is not the one of its first slot."""
    slot, last = _first_slot(hashed, names), names.slots.size - 1
    tag = (hashed << _TAG_BITS) >> _TAG_BITS
    while names.slots[slot] != _FREE:
        if names.slots[slot] >> _TAG_BITS == tag:
            row: Any = np.int64(names.slots[slot] & _ROW_BITS) - 1
            if _has_name(names.entries[row], text, begin):
                return int(row)
        slot = (slot + 1) & last
    return NO_ROW


@inlined
def _has_name(entry: _Bytes, text: _Bytes, begin: int) -> bool:
    """Return whether an entry has the name that begins here in the text and ends with a quote."""
    for at in range(NAME_AT, entry.size):
        byte = text[begin + at - NAME_AT]
        if entry[at] != byte:
            return False
        if byte == _QUOTE:
            return True
    return False


@inlined
def _with_byte(hashed: Any, byte: Any, factor: Any) -> np.uint64:
    """Return the hash of one byte more, as FNV-1a with a factor of our own."""
    more: np.uint64 = (hashed ^ np.uint64(byte)) * factor
    return more


@inlined
def _first_slot(hashed: Any, names: EntryNames) -> int:
    """Return the slot of a hash by its highest bits, which depend on every byte."""
    slot: Any = np.int64(hashed >> np.uint64(64 - names.bits))
    return int(slot)


@borrowing
def write_scores(
    names: EntryNames, rows: Integers, scores: npt.NDArray[np.int8], written: _Bytes
) -> None:
    """Write a JSON array of the entries of rows, [1 + N·W], with their scores 0..10.

    If there is no such row, its first byte is 0.
    """
    written[0] = 0
    if not are_within(rows, names.entries.shape[0]):
        return
    width = names.entries.shape[1]
    ones = width - ONES_FROM_END
    written[0] = _OPENS
    for place in range(rows.size):
        entry, begin = names.entries[np.uintp(rows[place])], 1 + place * width
        for at in range(width):
            written[begin + at] = entry[at]
        score = scores[place]
        written[begin + ones - 1] = _ZERO + 1 if score > 9 else _BLANK
        written[begin + ones] = _ZERO + score % 10
    written[written.size - 1] = _CLOSES  # instead of the last comma
