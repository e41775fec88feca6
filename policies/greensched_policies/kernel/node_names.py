"""The rows of the node names in a request, and the reply that scores them, byte by byte.

Decoding thousands of names and looking them up in a dict takes most of a large request's time,
nearly all of it cache misses. Names are read and compared eight bytes at a time.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from greensched_policies.compiling.compiled import borrowing, fast, inlined
from greensched_policies.costs.cost import Integers
from greensched_policies.kernel.seeing_nodes import are_within
from greensched_policies.kernel.words import (
    BYTES,
    before_first,
    bytes_in,
    quotes_in,
    unplain_in,
    up_to_first,
    word_at,
)
from greensched_policies.library.functions import NOT_PLAIN
from greensched_policies.library.node_names import NAME_AT, NO_ROW, ONES_FROM_END, PADDING

_Bytes = npt.NDArray[np.uint8]

_OPENS, _CLOSES, _QUOTE, _COMMA = (ord(each) for each in '[]",')
_ZERO, _BLANK = ord("0"), ord(" ")
_TAG_BITS = _MIXED_BITS = np.uint64(32)
_ROW_BITS = np.uint64(0xFFFF_FFFF)
_FREE = np.uint64(0)
_NOWHERE = -1  # the end of a name that is not plain


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
    """Enter the names of some rows into the hash table, unless they are not plain.

    An entry ends at least `BYTES` after the quote that ends its name.
    """
    for row in rows:
        entry = names.entries[row]
        hashed, end = _hashed(entry, NAME_AT, entry.size - BYTES, names.factor)
        if end == _NOWHERE:
            continue
        slot, last = _first_slot(hashed, names), names.slots.size - 1
        while names.slots[slot] != _FREE:
            slot = (slot + 1) & last
        names.slots[slot] = (hashed << _TAG_BITS) | np.uint64(row + 1)


@borrowing
def find_rows(names: EntryNames, text: _Bytes, rows: Integers, scratch: Integers) -> int:
    """Fill in the row of each name in a JSON array, [N], NO_ROW for an unknown one.

    Return how many are unknown, or NOT_PLAIN if the text is not a compact array of N plain names,
    as Go writes Kubernetes' names: in ASCII, and nothing escaped. `PADDING` bytes follow the array.

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
    at, end = 1, text.size - PADDING - 1
    if end < 1 or text[0] != _OPENS or text[end] != _CLOSES:
        return False
    for place in range(begins.size):
        if place > 0:
            if text[at] != _COMMA:
                return False
            at += 1
        if text[at] != _QUOTE:
            return False
        begins[place] = at + 1
        hashed, at = _hashed(text, at + 1, end, factor)
        if at == _NOWHERE:
            return False
        at += 1
        hashes[place] = np.int64(hashed)
    return at == end


@inlined
def _hashed(text: _Bytes, at: int, end: int, factor: Any) -> tuple[np.uint64, int]:
    """Return the hash of the name that begins here, and where the quote is that ends it.

    The quote is before `end`, which is `BYTES` before the end of the text, or earlier. Else, and if
    the name is not plain, return _NOWHERE.
    """
    hashed, word = factor, word_at(text, at)
    ended, unplain = quotes_in(word), unplain_in(word)
    while ended == _FREE:
        if at + BYTES > end or unplain != _FREE:
            return hashed, _NOWHERE
        hashed, at = _with_word(hashed, word, factor), at + BYTES
        word = word_at(text, at)
        ended, unplain = quotes_in(word), unplain_in(word)
    own = before_first(ended)
    at += bytes_in(own)
    if at >= end or unplain & own != _FREE:
        return hashed, _NOWHERE
    return _with_word(hashed, word & own, factor), at


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
    at = NAME_AT
    word, own = word_at(text, begin), word_at(entry, at)
    ended = quotes_in(word)
    while ended == _FREE:
        if word != own:
            return False
        begin, at = begin + BYTES, at + BYTES
        word, own = word_at(text, begin), word_at(entry, at)
        ended = quotes_in(word)
    return bool((word ^ own) & up_to_first(ended) == _FREE)


@inlined
def _with_word(hashed: Any, word: Any, factor: Any) -> np.uint64:
    """Return the hash of eight bytes more: as FNV-1a, with a factor of our own, and mixed.

    A product keeps what its highest bits know from its lowest ones.
    """
    more: np.uint64 = (hashed ^ word) * factor
    return more ^ (more >> _MIXED_BITS)


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
