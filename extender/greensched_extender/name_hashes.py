"""Finds the rows of node names in a request's bytes, without 5,000 strings and look-ups.

Decoding the names and looking them up in a dict takes most of a large request's time, nearly all
of it cache misses. Here each name is copied from the text as words of 8 bytes, padded with zeros.
A hash of the words gives a row; the row has that name if its own words are equal.
"""

import secrets
from collections.abc import Mapping

import msgspec
import numpy as np
import numpy.typing as npt

from greensched_extender.rows import NO_ROW, Rows

HashWords = npt.NDArray[np.uint64]
HashPlaces = npt.NDArray[np.int64]

LEAST_BYTES = 1 << 14  # of an array of names; smaller ones are decoded, which is faster
MOST_BYTES = 1 << 20  # larger ones are decoded
_LONGEST = 64  # characters; longer names are looked up in the dict
_ROOM = 128  # slots per name: for one name in 256 the slot is taken; the dict has it
_MOST_UNKNOWN = 1 / 16  # of the names offered; with more the array is decoded
_QUOTE, _BACKSLASH = 34, 92
_NO_NAME = 0xFFFF_FFFF_FFFF_FFFF  # no text has these bytes


class NameHashes:
    """Finds the rows of the names in a JSON array."""

    def __init__(self, row_of: Mapping[str, int], least_bytes: int = LEAST_BYTES) -> None:
        self._row_of = row_of
        self._least_bytes = max(3, least_bytes)
        plain = [name for name in row_of if _is_plain(name)]
        count = -(-max(map(len, plain), default=1) // 8)  # words of the longest name
        self._width = 8 * count
        self._masks = np.zeros((self._width + 1, self._width), np.uint8)
        for length in range(self._width + 1):
            self._masks[length, :length] = 255
        self._masks = self._masks.view(np.uint64)  # [length, word]
        # Random each time, so that an attacker cannot choose names that share a slot.
        self._factors = [np.uint64(secrets.randbits(64) | 1) for _ in range(count)]
        bits = max(8, (_ROOM * max(1, len(plain)) - 1).bit_length())
        self._shift = np.uint64(64 - bits)
        rows = np.fromiter((row_of[name] for name in plain), np.int64, len(plain))
        padded = b"".join(name.encode().ljust(self._width, b"\0") for name in plain)
        words = np.frombuffer(padded, np.uint64).reshape(-1, count)
        self._words = np.full((int(rows.max(initial=-1)) + 1, count), _NO_NAME, np.uint64)
        self._words[rows] = words
        self._slot_row = np.zeros(1 << bits, np.int32)  # free slots hold row 0, whose name differs
        self._slot_row[self._slots(words)] = rows

    def rows(self, raw: bytes) -> Rows | None:
        """Return the row of each name in the valid JSON `raw`, NO_ROW for an unknown name.

        Return None when `raw` must be decoded: it is small or very large, is not a compact array
        of plain strings, has many unknown names, or holds bytes that are not UTF-8.
        """
        if not self._words.size or not self._least_bytes <= len(raw) <= MOST_BYTES:
            return None
        if raw[0] != ord("["):
            return None
        if _BACKSLASH in raw:
            return None
        quotes = np.flatnonzero(np.frombuffer(raw, np.uint8) == _QUOTE)
        if quotes.size % 2:
            return None
        starts, ends = quotes[0::2] + 1, quotes[1::2]
        lengths = ends - starts
        # Every byte is accounted for: two brackets, the commas, and names with their quotes.
        if int(lengths.sum()) + 3 * starts.size + 1 != len(raw):
            return None
        words = self._lift(raw, starts, lengths)
        rows = self._slot_row.take(self._slots(words)).astype(np.int64)
        found = self._words.take(rows, axis=0)
        if np.array_equal(found, words) and lengths.max() <= self._width:
            return rows
        is_known = (found == words).all(axis=1) & (lengths <= self._width)
        unknown = np.flatnonzero(~is_known)
        if unknown.size > 8 + _MOST_UNKNOWN * rows.size:
            return None
        try:
            names = [raw[starts[at] : ends[at]].decode() for at in unknown.tolist()]
        except UnicodeDecodeError:
            return None
        rows[unknown] = [self._row_of.get(name, NO_ROW) for name in names]
        return rows

    def _lift(self, raw: bytes, starts: HashPlaces, lengths: HashPlaces) -> HashWords:
        """Return each name's first bytes as words, [names, words], with zeros after its end."""
        text = b"%b%b" % (raw, bytes(self._width))
        windows = np.ndarray((len(raw),), f"V{self._width}", text, strides=(1,))
        words = windows[starts].view(np.uint64).reshape(starts.size, -1)
        words &= self._masks.take(lengths, axis=0, mode="clip")
        return words

    def _slots(self, words: HashWords) -> HashPlaces:
        hashes = words[:, 0] * self._factors[0]
        for place, factor in enumerate(self._factors[1:], start=1):
            hashes += words[:, place] * factor
        return (hashes >> self._shift).astype(np.int64)


def _is_plain(name: str) -> bool:
    """Return whether a name is short and JSON writes it unescaped, as it does Kubernetes' names."""
    is_itself = msgspec.json.encode(name) == f'"{name}"'.encode()
    return is_itself and 0 < len(name) <= _LONGEST and name.isascii()
