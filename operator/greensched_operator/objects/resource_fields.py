"""Custom resources as received, JSON or decoded already: the object and its metadata."""

from collections.abc import Mapping
from typing import Any

import msgspec

from greensched_core.errors import BadInput


class MetaFields(msgspec.Struct):
    """metadata of a custom resource."""

    name: str = ""
    namespace: str = ""
    generation: int = 0


def decoded_object(raw: object) -> Mapping[str, Any]:
    """Return an object, JSON or decoded already, as a mapping; raise BadInput for anything else."""
    try:
        decoded = msgspec.json.decode(raw) if isinstance(raw, bytes | str) else raw
    except (msgspec.DecodeError, UnicodeError, RecursionError) as fault:
        raise BadInput(f"not JSON: {fault}") from None
    if not isinstance(decoded, Mapping):
        raise BadInput(f"expected an object, found {type(decoded).__name__}")
    return decoded


def read_meta(whole: Mapping[str, Any]) -> MetaFields:
    """Return an object's metadata; empty where it cannot be read."""
    try:
        return msgspec.convert(whole.get("metadata"), MetaFields)
    except (msgspec.ValidationError, OverflowError, RecursionError):
        return MetaFields()
