"""Bodies of core/v1 Events: what a process says of an object, for `kubectl describe`."""

import hashlib
from dataclasses import dataclass

import msgspec

from greensched_core.signals.timestamps import format_timestamp

_MOST_NAME = 236  # characters: 253 that a name may have, less the hash behind it
_MOST_NOTE = 1024  # characters of an event's message (core/v1 Event)


@dataclass(frozen=True, slots=True)
class Regarded:
    """The object that an event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


def event_body(
    about: Regarded, reason: str, note: str, at_s: float, *, component: str, is_warning: bool
) -> bytes:
    """Return an Event about an object; what says the same has the same name. A long note is cut.

    at_s: seconds since the Unix epoch. component: who says so.
    """
    said = hashlib.sha256(f"{about.uid}/{reason}/{note}".encode()).hexdigest()[:16]
    at = format_timestamp(int(at_s))
    return msgspec.json.encode(
        {
            "metadata": {
                "name": f"{about.name[:_MOST_NAME].rstrip('-.')}.{said}",
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
