"""The cluster's emergency release: while its ConfigMap exists, nothing is held."""

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from greensched_cli.reading.operator_reading import (
    USUAL_NAMESPACE,
    emergency_release_path,
    find_lease,
)
from greensched_cli.reading.operator_state import emergency_release_commands
from greensched_cli.reading.pieces import Pieces
from greensched_core.errors import ApiUnavailable
from greensched_core.kubernetes_api import ApiClient
from greensched_core.signals.timestamps import format_timestamp
from greensched_operator.objects.watched import EMERGENCY

_NOT_FOUND, _EXISTS = 404, 409


@dataclass(frozen=True, slots=True)
class Place:
    """The namespace of the emergency release."""

    namespace: str
    is_certain: bool  # it was given, or holds the operator's Lease


async def find_place(client: ApiClient, namespace: str | None) -> Place:
    """Return the operator's namespace: the given one, else its Lease's, else the usual one."""
    if namespace is not None:
        return Place(namespace, is_certain=True)
    lease = await find_lease(Pieces(client), None)
    if lease is None:
        return Place(USUAL_NAMESPACE, is_certain=False)
    return Place(lease.metadata.namespace, is_certain=True)


async def turn_on(client: ApiClient, place: Place, now_s: float) -> None:
    """Turn the emergency release on; safe to repeat. Raises ApiUnavailable if refused."""
    body = {"metadata": {"name": EMERGENCY}, "data": {"since": format_timestamp(round(now_s))}}
    try:
        path = f"/api/v1/namespaces/{place.namespace}/configmaps"
        await client.create(path, msgspec.json.encode(body))
    except ApiUnavailable as fault:
        if fault.status == _NOT_FOUND:
            raise ApiUnavailable(
                f"there is no namespace {place.namespace}: name the one that GreenSched is "
                "installed in by --install-namespace",
                _NOT_FOUND,
            ) from fault
        if fault.status != _EXISTS:
            raise


async def turn_off(client: ApiClient, place: Place) -> None:
    """Turn the emergency release off; safe to repeat. Raises ApiUnavailable if refused."""
    try:
        await client.delete(emergency_release_path(place.namespace))
    except ApiUnavailable as fault:
        if fault.status != _NOT_FOUND:
            raise


async def is_on(client: ApiClient, place: Place) -> bool:
    """Return whether the emergency release is on; raise ApiUnavailable if that is unknown."""
    try:
        await client.get(emergency_release_path(place.namespace))
    except ApiUnavailable as fault:
        if fault.status == _NOT_FOUND:
            return False
        raise
    return True


def state_document(place: Place, *, is_turned_on: bool) -> dict[str, str | bool]:
    """Return the emergency release's state as JSON values."""
    return {
        "namespace": place.namespace,
        "isNamespaceCertain": place.is_certain,
        "isEmergencyRelease": is_turned_on,
    }


def meaning(place: Place, *, is_turned_on: bool) -> Iterator[str]:
    """Yield what the emergency release's state means, and how to change it, with kubectl too."""
    on, off = emergency_release_commands(place.namespace)
    where = "" if place.namespace == USUAL_NAMESPACE else f" --install-namespace {place.namespace}"
    if is_turned_on:
        yield f"The emergency release is on (ConfigMap {place.namespace}/{EMERGENCY})."
        yield "Operator or releaser start all held work within seconds, and new work is not held."
        yield "If both are dead: greensched release -A"
        yield f"To hold work again: greensched release --emergency-release off{where}, or {off}"
    else:
        yield (
            f"The emergency release is off (namespace {place.namespace}): policies decide on holds."
        )
        yield (
            f"To start all and hold nothing: greensched release --emergency-release on{where}, "
            f"or {on}"
        )
    if not place.is_certain:
        yield (
            f"No Lease of an operator was found: namespace {place.namespace} is a guess; "
            "if it is wrong, give --install-namespace"
        )
