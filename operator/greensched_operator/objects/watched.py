"""Objects other than workloads, by name: sinks for `greensched_core.watching.Watch`."""

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, Protocol, TypeVar

import msgspec

from greensched_operator.objects.green_policy import GreenPolicy, parse
from greensched_operator.objects.workloads import Meta

# While this ConfigMap exists in the operator's namespace, all held work is released and none held.
EMERGENCY = "greensched-emergency-release"


class Named(Protocol):
    """A value of an object that has a namespace and a name."""

    @property
    def namespace(self) -> str:
        """Return its namespace."""
        ...

    @property
    def name(self) -> str:
        """Return its name."""
        ...


Value = TypeVar("Value", bound=Named)


class Objects(Generic[Value]):
    """The newest version of each object, by namespace and name."""

    def __init__(self, changed: Callable[[Value], None] = lambda _: None) -> None:
        """`changed` is called with each changed or deleted object, in the watch's task."""
        self._held: dict[tuple[str, str], Value] = {}
        self._gone: set[tuple[str, str]] = set()
        self._changed = changed

    def __iter__(self) -> Iterator[Value]:
        return iter(self._held.values())

    def __len__(self) -> int:
        return len(self._held)

    @property
    def by_name(self) -> Mapping[tuple[str, str], Value]:
        """Return all objects, by namespace and name."""
        return self._held

    def get(self, namespace: str, name: str) -> Value | None:
        """Return the object with that name; None if there is none."""
        return self._held.get((namespace, name))

    def list_began(self) -> None:
        """A full list follows."""
        self._gone = set(self._held)

    def upsert(self, item: Value) -> None:
        """An object is there or has changed."""
        key = (item.namespace, item.name)
        self._gone.discard(key)
        if self._held.get(key) != item:
            self._held[key] = item
            self._changed(item)

    def list_ended(self) -> None:
        """Whatever was not in the list is gone."""
        gone, self._gone = self._gone, set()
        for key in gone:
            self._changed(self._held.pop(key))

    def remove(self, item: Value) -> None:
        """An object is gone."""
        if self._held.pop((item.namespace, item.name), None) is not None:
            self._changed(item)


class EmergencyConfigMap(msgspec.Struct, frozen=True):
    """A ConfigMap of which only the existence counts."""

    metadata: Meta

    @property
    def namespace(self) -> str:
        """Return its namespace."""
        return self.metadata.namespace

    @property
    def name(self) -> str:
        """Return its name."""
        return self.metadata.name


def decode_green_policy(raw: bytes | msgspec.Raw) -> GreenPolicy:
    """Return the GreenPolicy in JSON, with its faults."""
    return parse(bytes(raw))


decode_emergency_config_map = msgspec.json.Decoder(EmergencyConfigMap).decode
