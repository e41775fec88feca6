"""The rows of the node names in a request's bytes, and its reply, by the library."""

import secrets
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from greensched_policies.library.functions import NOT_PLAIN
from greensched_policies.library.loading import address_of, call

Rows = npt.NDArray[np.int64]
ByteArray = npt.NDArray[np.uint8]

NO_ROW = -1  # of a name that has no node, or one of unknown capacity
HEAD = b'{"Host":'  # of an entry, before a name in quotes
TAIL = b"  },"  # room for the two digits of 10; JSON allows blanks before a number
NAME_AT = len(HEAD) + 1
ONES_FROM_END = len(b" },")  # of an entry, from its end
PADDING = 8  # bytes behind a text, which is read eight bytes at a time
_PADDING, _QUOTE = bytes(PADDING), ord('"')
_LEAST_BITS = 8
_ROOM = 4  # slots for each name, at least
_MOST_ENTRIES = 1 << 31


class EntryTable:
    """The entries of a prioritize reply, one a row, and the rows of the names in them.

    It is for one thread: results pass through memory that all calls share.
    """

    def __init__(self, entries: ByteArray, rows: Iterable[int]) -> None:
        """`entries`, [E,W], are `HEAD`, a name as JSON, what follows, blanks and `TAIL`.

        `rows` are those with a name to be found.
        """
        named = np.fromiter(rows, np.int64)
        if named.size and not 0 <= named.min() <= named.max() < min(len(entries), _MOST_ENTRIES):
            raise IndexError(f"rows {named.min()} to {named.max()} of {len(entries)} entries")
        self._entries = entries
        bits = max(_LEAST_BITS, (_ROOM * named.size).bit_length())
        self._slots = np.zeros(1 << bits, np.uint64)
        self._unknown = np.empty(1, np.int64)
        self._unknown_at = address_of(self._unknown, np.int64)
        self._given = [
            *entries.shape, address_of(entries, np.uint8), bits, secrets.randbits(62) * 2 + 1,
            address_of(self._slots, np.uint64),
        ]  # fmt: skip
        call("hash_names", [*self._given, named.size, address_of(named, np.int64)], [])

    def rows(self, text: bytes | bytearray) -> tuple[Rows, int] | None:
        """Return the row of each name in a JSON array, NO_ROW if unknown, and how many are unknown.

        Return None for a text that must be decoded: not a compact array of plain names.
        """
        padded = np.frombuffer(bytearray().join((text, _PADDING)), np.uint8)
        count = int(np.count_nonzero(padded == _QUOTE)) // 2
        found = np.empty((4, count), np.int64)  # rows, and working memory
        results = [address_of(found, np.int64), self._unknown_at]
        text_at = address_of(padded, np.uint8)
        call("find_rows", [*self._given, padded.size, count, text_at, *results], [])
        unknown = int(self._unknown[0])
        return None if unknown == NOT_PLAIN else (found[0], unknown)

    def written(self, rows: Rows, scores: npt.NDArray[np.int8]) -> bytes:
        """Return a JSON array of the entries of rows, [N], with their scores 0..10, [N]."""
        written = np.empty(1 + max(rows.size * self._entries.shape[1], 1), np.uint8)
        given = [address_of(rows, np.int64), address_of(scores, np.int8)]
        call("write_scores", [*self._given, rows.size, *given, address_of(written, np.uint8)], [])
        if not written[0]:
            raise IndexError(f"rows {rows.min()} to {rows.max()} of {len(self._entries)} entries")
        return written.tobytes()
