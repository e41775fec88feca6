"""Node names to rows straight from a request's bytes, without 5,000 strings and look-ups.

Decoding the names and asking a dict takes most of a large request's time, nearly all of it cache
misses. Here a polynomial hash over the whole array of names is summed up once, so that each name's
hash is a difference of two sums, and a table tells its row. The multiplier is drawn anew in each
process; a row is taken only when 64 bits of hash and the length agree.
"""

import secrets
from collections.abc import Mapping

import msgspec
import numpy as np
import numpy.typing as npt

from greensched_extender.rows import NO_ROW, Rows

Hashes = npt.NDArray[np.uint64]

LEAST_BYTES = 1 << 15  # of an array of names; in smaller ones decoding is faster
MOST_BYTES = 1 << 20  # larger ones are decoded
_ROOM = 128  # slots a name: one name in 256 finds its slot taken, and is looked up in the dict
_MOST_STRANGERS = 1 / 16  # of the names offered; with more the array is decoded
_QUOTE, _BACKSLASH = 34, 92
_WORD = 1 << 64
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio (Knuth, TAOCP 3, 6.4)
_BUILT_AT_ONCE = 1_000


class _Powers:
    """Powers of one odd number and of its inverse modulo 2^64, as many as were needed so far."""

    def __init__(self) -> None:
        self._base = secrets.randbits(64) | 1
        self.up: Hashes = np.ones(0, np.uint64)
        self.down: Hashes = np.ones(0, np.uint64)

    def reach(self, size: int) -> None:
        """Make sure that there are `size` powers."""
        if self.up.size < size:
            count = 1 << max(12, (size - 1).bit_length())
            self.up = _powers(self._base, count)
            self.down = _powers(pow(self._base, -1, _WORD), count)


def _powers(base: int, count: int) -> Hashes:
    factors = np.full(count, base, np.uint64)
    factors[0] = 1
    return np.multiply.accumulate(factors)


_powers_of = _Powers()


class NameHashes:
    """Finds the rows of the names in a JSON array."""

    def __init__(self, row_of: Mapping[str, int], least_bytes: int = LEAST_BYTES) -> None:
        self._row_of = row_of
        self._least_bytes = max(3, least_bytes)
        plain = [name for name in row_of if _is_plain(name)]
        bits = max(8, (_ROOM * max(1, len(plain)) - 1).bit_length())
        self._shift = np.uint64(64 - bits)
        self._slot_of = np.zeros(1 << bits, np.int32)  # place among `plain`; 0 when it is free
        hashes, lengths = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)]
        for start in range(0, len(plain), _BUILT_AT_ONCE):
            names = "".join(f'"{name}",' for name in plain[start : start + _BUILT_AT_ONCE])
            spans = _spans(np.frombuffer(names.encode(), np.uint8))
            hashes.append(_hashes(np.frombuffer(names.encode(), np.uint8), *spans))
            lengths.append(spans[1] - spans[0])
        self._hashes = np.concatenate(hashes)
        self._lengths = np.concatenate(lengths)
        self._rows = np.fromiter((row_of[name] for name in plain), np.int64, len(plain))
        self._slot_of[self._slots(self._hashes)] = np.arange(len(plain), dtype=np.int32)

    def rows(self, raw: bytes) -> Rows | None:
        """Return the row of each name in the valid JSON `raw`, NO_ROW for a stranger.

        None when it must be decoded: it is no compact array of plain strings, is very large, or
        holds bytes that are no UTF-8.
        """
        if not self._rows.size or not self._least_bytes <= len(raw) <= MOST_BYTES:
            return None
        if raw[0] != ord("["):
            return None
        if _BACKSLASH in raw:
            return None
        text = np.frombuffer(raw, np.uint8)
        before, after = _spans(text)
        lengths = after - before
        # Every byte is accounted for: two brackets, the commas, and names with their quotes.
        if before.size != after.size or int(lengths.sum()) + 2 * before.size + 1 != len(raw):
            return None
        hashes = _hashes(text, before, after)
        place = self._slot_of.take(self._slots(hashes))
        rows: Rows = self._rows.take(place)
        is_known = self._hashes.take(place) == hashes
        is_known &= self._lengths.take(place) == lengths
        if not is_known.all():
            strangers = np.flatnonzero(~is_known)
            if strangers.size > 8 + _MOST_STRANGERS * rows.size:
                return None
            try:
                names = [raw[before[at] + 1 : after[at]].decode() for at in strangers.tolist()]
            except UnicodeDecodeError:
                return None
            rows[strangers] = [self._row_of.get(name, NO_ROW) for name in names]
        return rows

    def _slots(self, hashes: Hashes) -> npt.NDArray[np.int64]:
        return (hashes * _SPREAD >> self._shift).astype(np.int64)


def _spans(text: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return where each string's quotes stand: before it and after it."""
    quotes = np.flatnonzero(text == _QUOTE)
    return quotes[0::2], quotes[1::2]


def _hashes(
    text: npt.NDArray[np.uint8],
    before: npt.NDArray[np.int64],
    after: npt.NDArray[np.int64],
) -> Hashes:
    _powers_of.reach(text.size)
    sums: Hashes = text * _powers_of.up[: text.size]
    np.cumsum(sums, out=sums)
    hashes: Hashes = sums.take(after - 1) - sums.take(before)
    hashes *= _powers_of.down.take(before)
    return hashes


def _is_plain(name: str) -> bool:
    """Say whether JSON writes the name as it is; Kubernetes allows no other names."""
    return msgspec.json.encode(name) == f'"{name}"'.encode() and bool(name)
