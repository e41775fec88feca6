"""Bodies of core/v1 Events about an object, which `kubectl describe` shows."""

import hashlib
from dataclasses import dataclass

import msgspec

from greensched_core.signals.timestamps import format_timestamp

_MOST_NAME = 236  # characters: the 253 of a name, less the hash and its dot
_MOST_NOTE = 1024  # characters of an event's message (core/v1 Event)


@dataclass(frozen=True, slots=True)
class EventSubject:
    """The object that an event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


def event_body(
    about: EventSubject, reason: str, note: str, at_s: float, *, component: str, is_warning: bool
) -> bytes:
    """Return an Event about an object; equal events have the same name. A long note is cut.

    at_s: seconds since the Unix epoch. component: the source of the event.
    """
    digest = hashlib.sha256(f"{about.uid}/{reason}/{note}".encode()).hexdigest()[:16]
    at = format_timestamp(int(at_s))
    return msgspec.json.encode(
        {
            "metadata": {
                "name": f"{about.name[:_MOST_NAME].rstrip('-.')}.{digest}",
                "namespace": about.namespace,
            },
            "involvedObject": {
                "apiVersion": about.api_version,
                "kind": about.kind,
                "namespace": about.namespace,
                "name": about.name,
                "uid": about.uid,
            },
            "reason": reason,
            "message": note[:_MOST_NOTE],
            "type": "Warning" if is_warning else "Normal",
            "source": {"component": component},
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": 1,
        }
    )
