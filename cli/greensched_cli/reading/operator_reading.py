"""Reads an operator's state: Leases, releaser, webhook, emergency release, signals."""

import asyncio

import msgspec

from greensched_cli.reading.operator_state import (
    HEARTBEAT,
    ClusterPart,
    Leader,
    OperatorState,
    Signal,
    WebhookState,
)
from greensched_cli.reading.pieces import UNREADABLE, Pieces, why_unreadable
from greensched_core.api_paths import CONFIGURATIONS, leases_path
from greensched_core.errors import ApiUnavailable, BadInput
from greensched_core.signals.grid import parse_grid_signal
from greensched_core.signals.timestamps import parse_timestamp
from greensched_core.signals.watched import GRID_SIGNALS_PATH
from greensched_operator.objects.watched import EMERGENCY
from greensched_operator.runtime.settings import OperatorSettings

_DEFAULTS = OperatorSettings.model_fields
USUAL_NAMESPACE = str(_DEFAULTS["namespace"].default)
LEASE = str(_DEFAULTS["lease"].default)
_WEBHOOK_SUFFIX = ".greensched.io"  # of the chart's webhooks; configuration names may differ
_FALLBACK = "Fallback"  # ends the names of conditions
_RELEASER = "app.kubernetes.io/part-of=greensched,app.kubernetes.io/component=releaser"
_ALL_LEASES = "/apis/coordination.k8s.io/v1/leases"


class _Meta(msgspec.Struct):
    name: str = ""
    namespace: str = ""


class _LeaseSpec(msgspec.Struct):
    holderIdentity: str | None = None
    renewTime: str | None = None
    leaseDurationSeconds: int | None = None


class LeaseObject(msgspec.Struct):
    """The fields of a Lease (coordination.k8s.io/v1) that are read."""

    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _LeaseSpec = msgspec.field(default_factory=_LeaseSpec)


class _ClientConfig(msgspec.Struct):
    caBundle: str = ""


class _Hook(msgspec.Struct):
    name: str = ""
    clientConfig: _ClientConfig = msgspec.field(default_factory=_ClientConfig)


class _Configuration(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    webhooks: list[_Hook] | None = None


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""
    reason: str | None = None


class _Conditions(msgspec.Struct):
    conditions: list[_Condition] | None = None


class _Pod(msgspec.Struct):
    status: _Conditions = msgspec.field(default_factory=_Conditions)


class _Pods(msgspec.Struct):
    items: list[_Pod]


class _SignalSpec(msgspec.Struct):
    zone: str = ""


class _SignalObject(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _SignalSpec = msgspec.field(default_factory=_SignalSpec)
    status: _Conditions = msgspec.field(default_factory=_Conditions)


_decode_lease = msgspec.json.Decoder(LeaseObject).decode
_decode_pods = msgspec.json.Decoder(_Pods).decode


async def read_state(pieces: Pieces, namespace: str | None, now_s: float) -> OperatorState:
    """Return the state of the operator in a namespace; if None, in that of its Lease.

    Raises ApiUnavailable if the API server does not answer.
    """
    lease = await find_lease(pieces, namespace)
    own = namespace or (lease.metadata.namespace if lease else USUAL_NAMESPACE)
    releasers, heartbeat_age_s, webhooks, is_emergency_release, signals = await asyncio.gather(
        _releasers(pieces, own),
        _heartbeat_age_s(pieces, own, now_s),
        pieces.listed(ClusterPart.WEBHOOK, CONFIGURATIONS, _webhook),
        is_emergency_release_on(pieces, own),
        pieces.listed(ClusterPart.SIGNALS, GRID_SIGNALS_PATH, lambda raw: _signal(raw, now_s)),
    )
    return OperatorState(
        namespace=own,
        is_certain=namespace is not None or lease is not None,
        leader=_leader(lease, now_s) if lease else None,
        releasers=releasers,
        heartbeat_age_s=heartbeat_age_s,
        webhooks=tuple(each for each in webhooks if each is not None),
        is_emergency_release=is_emergency_release,
        signals=tuple(sorted(signals, key=lambda each: each.zone)),
        unread=pieces.unread,
    )


async def find_lease(pieces: Pieces, namespace: str | None) -> LeaseObject | None:
    """Return the operator's Lease in a namespace; if None, the usual one or else the newest."""
    path = f"{leases_path(namespace or USUAL_NAMESPACE)}/{LEASE}"
    if namespace is not None:
        return await pieces.one(ClusterPart.LEASE, path, _decode_lease)
    try:
        return _decode_lease(await pieces.client.get(path))
    except ApiUnavailable as fault:
        if fault.status is None:
            raise
    except UNREADABLE as fault:
        pieces.unread[ClusterPart.LEASE] = why_unreadable(fault)
        return None
    found = await pieces.listed(
        ClusterPart.LEASE, _ALL_LEASES, _decode_lease, field_selector=f"metadata.name={LEASE}"
    )
    return max(found, key=lambda each: each.spec.renewTime or "", default=None)


async def is_emergency_release_on(pieces: Pieces, namespace: str) -> bool:
    """Return whether the cluster's emergency release is on."""
    return (
        await pieces.one(ClusterPart.EMERGENCY_RELEASE, emergency_release_path(namespace), bool)
        is not None
    )


def emergency_release_path(namespace: str) -> str:
    """Return the path of the ConfigMap that exists while the emergency release is on."""
    return f"/api/v1/namespaces/{namespace}/configmaps/{EMERGENCY}"


async def _releasers(pieces: Pieces, namespace: str) -> tuple[int, int]:
    found = await pieces.one(
        ClusterPart.RELEASER, f"/api/v1/namespaces/{namespace}/pods", _decode_pods,
        {"labelSelector": _RELEASER},
    )  # fmt: skip
    pods = found.items if found else []
    return sum(map(_is_ready, pods)), len(pods)


def _is_ready(pod: _Pod) -> bool:
    return any(
        each.type == "Ready" and each.status == "True" for each in pod.status.conditions or ()
    )


async def _heartbeat_age_s(pieces: Pieces, namespace: str, now_s: float) -> float | None:
    path = f"{leases_path(namespace)}/{HEARTBEAT}"
    lease = await pieces.one(ClusterPart.HEARTBEAT, path, _decode_lease)
    return _silent_s(lease, now_s) if lease else None


def _leader(lease: LeaseObject, now_s: float) -> Leader:
    spec = lease.spec
    lasts_s = spec.leaseDurationSeconds or float(_DEFAULTS["lease_duration_s"].default)
    return Leader(spec.holderIdentity or "", _silent_s(lease, now_s), lasts_s)


def _silent_s(lease: LeaseObject, now_s: float) -> float | None:
    renewed = lease.spec.renewTime
    try:
        return now_s - parse_timestamp(renewed) if renewed else None
    except BadInput:
        return None


def _webhook(raw: bytes) -> WebhookState | None:
    found = msgspec.json.decode(raw, type=_Configuration)
    hooks = [each for each in found.webhooks or () if each.name.endswith(_WEBHOOK_SUFFIX)]
    if not hooks:
        return None
    return WebhookState(found.metadata.name, all(each.clientConfig.caBundle for each in hooks))


def _signal(raw: bytes, now_s: float) -> Signal:
    named = msgspec.json.decode(raw, type=_SignalObject)
    zone = named.spec.zone or named.metadata.name
    forecast, _ = parse_grid_signal(raw, now_s)
    fallbacks = tuple(
        f"{each.type.removesuffix(_FALLBACK).lower()} ({each.reason})"
        for each in named.status.conditions or ()
        if each.type.endswith(_FALLBACK) and each.status == "True"
    )
    if forecast is None:
        return Signal(zone, "", None, fallbacks)
    return Signal(zone, forecast.source, now_s - forecast.observed_at, fallbacks)
