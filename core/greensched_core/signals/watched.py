"""GridSignal objects as a watch brings them, into the chain of fallbacks."""

from collections.abc import Callable

import msgspec

from greensched_core import labels
from greensched_core.clock import Clock
from greensched_core.signals.chain import GridSignals

GRID_SIGNALS = f"/apis/{labels.GROUP}/{labels.VERSION}/{labels.GRID_SIGNALS}"


class _Named(msgspec.Struct):
    name: str


class SignalObject(msgspec.Struct):
    """A GridSignal: its name, and all of it as the API server wrote it."""

    metadata: _Named
    raw: bytes = b""


_decode_named = msgspec.json.Decoder(SignalObject).decode


def decode_signal(raw: bytes | msgspec.Raw) -> SignalObject:
    """Return a GridSignal, the reading of its values left to `GridSignals`."""
    item = _decode_named(raw)
    item.raw = bytes(raw)
    return item


class SignalSink:
    """Keeps the grid signals."""

    def __init__(
        self, signals: GridSignals, clock: Clock, changed: Callable[[], None] = lambda: None
    ) -> None:
        """`changed` is called after each change."""
        self._signals = signals
        self._clock = clock
        self._changed = changed
        self._listed: set[str] = set()

    def list_began(self) -> None:
        """A full list follows."""
        self._listed = set()

    def upsert(self, item: SignalObject) -> None:
        """A GridSignal is there or has changed."""
        self._listed.add(item.metadata.name)
        self._signals.upsert(item.metadata.name, item.raw, self._clock.now())
        self._changed()

    def list_ended(self) -> None:
        """Whatever the list did not hold is gone; its values stay as last good ones."""
        self._signals.keep_only(self._listed)
        self._changed()

    def remove(self, item: SignalObject) -> None:
        """A GridSignal is gone."""
        self._signals.delete(item.metadata.name)
        self._changed()
