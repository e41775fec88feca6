"""Passes GridSignal objects from a watch to the signals' fallback chain."""

from collections.abc import Callable

import msgspec

from greensched_core import labels
from greensched_core.clock import Clock
from greensched_core.signals.chain import GridSignals

GRID_SIGNALS_PATH = f"{labels.API}/{labels.GRID_SIGNALS}"


class _Named(msgspec.Struct):
    name: str


class SignalObject(msgspec.Struct):
    """A GridSignal: its name, and the whole object as JSON."""

    metadata: _Named
    raw: bytes = b""


_decode_named = msgspec.json.Decoder(SignalObject).decode


def decode_signal(raw: bytes | msgspec.Raw) -> SignalObject:
    """Return a GridSignal; `GridSignals` reads its values later."""
    item = _decode_named(raw)
    item.raw = bytes(raw)
    return item


class SignalSink:
    """A sink that keeps the grid signals current."""

    def __init__(
        self, signals: GridSignals, clock: Clock, changed: Callable[[], None] = lambda: None
    ) -> None:
        """`changed` is called after each change."""
        self._signals = signals
        self._clock = clock
        self._changed = changed
        self._listed: set[str] = set()

    def list_began(self) -> None:
        """Begin a full list."""
        self._listed = set()

    def upsert(self, item: SignalObject) -> None:
        """Take in a GridSignal that is new or has changed."""
        self._listed.add(item.metadata.name)
        self._signals.upsert(item.metadata.name, item.raw, self._clock.now())
        self._changed()

    def list_ended(self) -> None:
        """Drop GridSignals that were not in the list; their values stay the last good ones."""
        self._signals.keep_only(self._listed)
        self._changed()

    def remove(self, item: SignalObject) -> None:
        """Drop a deleted GridSignal."""
        self._signals.delete(item.metadata.name)
        self._changed()
