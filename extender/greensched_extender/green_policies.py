"""Weights and bundle of each pod: those of the GreenPolicy that it follows, else the settings'.

Placement reads nothing else of a GreenPolicy; `mode` and the other fields are about waiting.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import msgspec
import structlog

from greensched_core.custom_resources.policy_lookup import find_policy
from greensched_core.errors import BadInput
from greensched_extender.metrics import Fallback, PolicyFault
from greensched_policies.encoding.weight_fields import WEIGHTS
from greensched_policies.encoding.weights import Weights
from greensched_policies.learned.model_fields import BUNDLE, ONNX, WHEN_POLICY

log = structlog.get_logger()

SETTINGS = "the extender's settings"


class _Meta(msgspec.Struct):
    name: str
    namespace: str = ""


class WrittenPolicy(msgspec.Struct):
    """A GreenPolicy as the API server writes it; its spec is read later."""

    metadata: _Meta
    spec: msgspec.Raw = msgspec.field(default_factory=lambda: msgspec.Raw(b"null"))


decode_policy = msgspec.json.Decoder(WrittenPolicy).decode


@dataclass(frozen=True, slots=True)
class FollowedPolicy:
    """What placement reads of the policy that a pod follows; decisions of one policy share it."""

    weights: Weights
    source: str  # whose weights, for people: "GreenPolicy team/default", or SETTINGS
    bundle: str = ""  # ConfigMap of the bundle whose `where` head answers; "": the extender's own


class FoundWeights(NamedTuple):
    """A pod's weights, and what was missing or malformed."""

    by: FollowedPolicy
    fallback: Fallback | None = None


@dataclass(slots=True)
class _Known:
    title: str
    chosen: FoundWeights
    faults: tuple[str, ...] = field(default=())  # of the newest version


class GreenPolicies:
    """The newest readable weights of each GreenPolicy; a sink for their watch.

    A version that cannot be read changes nothing: the last one that could be, or the settings,
    count. Until the first list is complete, or if there is none, the settings count for all pods.
    """

    def __init__(
        self, settings: Weights, cluster_namespace: str, count_fault: Callable[[PolicyFault], None]
    ) -> None:
        """`cluster_namespace` holds the policies of all namespaces."""
        self.of_settings = FollowedPolicy(settings, SETTINGS)
        self._cluster_namespace = cluster_namespace
        self._count_fault = count_fault
        self._known: dict[tuple[str, str], _Known] = {}
        self._gone: set[tuple[str, str]] = set()
        self._has_listed = False

    def __len__(self) -> int:
        return len(self._known)

    def of(self, namespace: str, name: str | None) -> FoundWeights:
        """Return the weights of a pod in a namespace, whose annotation may name a policy."""
        if not self._has_listed:
            return FoundWeights(self.of_settings, Fallback.NO_POLICIES)
        found = find_policy(self._known, namespace, name, self._cluster_namespace)
        chosen = FoundWeights(self.of_settings) if found.policy is None else found.policy.chosen
        if found.is_named_missing:
            return FoundWeights(chosen.by, Fallback.UNKNOWN_POLICY)
        return chosen

    def faults(self) -> list[str]:
        """Return a sentence for each policy whose newest version cannot be read."""
        return [
            f"{known.title}: {fault}; {known.chosen.by.source} count"
            for known in self._known.values()
            for fault in known.faults
        ]

    def list_began(self) -> None:
        """Begin a full list."""
        self._gone = set(self._known)

    def upsert(self, item: WrittenPolicy) -> None:
        """Take in a policy that is new or has changed."""
        place = item.metadata.namespace, item.metadata.name
        self._gone.discard(place)
        title = f"GreenPolicy {'/'.join(place)}"
        try:
            spec = _spec(item.spec)
            read = FollowedPolicy(_weights(spec), title, _bundle(spec))
        except _Unreadable as fault:
            self._keep_last(place, title, fault)
            return
        self._known[place] = _Known(title, FoundWeights(read))

    def list_ended(self) -> None:
        """Drop the policies that were not in the list."""
        for place in self._gone:
            self._known.pop(place, None)
        self._gone = set()
        self._has_listed = True

    def remove(self, item: WrittenPolicy) -> None:
        """Drop a deleted policy."""
        self._known.pop((item.metadata.namespace, item.metadata.name), None)

    def _keep_last(self, place: tuple[str, str], title: str, fault: "_Unreadable") -> None:
        last = self._known.get(place) or _Known(title, FoundWeights(self.of_settings))
        if last.faults == (str(fault),):
            return  # listed again
        source = last.chosen.by.source
        if not last.faults and source == title:
            source = f"the last good version of {title}"
        kept = FoundWeights(replace(last.chosen.by, source=source), Fallback.UNREADABLE_POLICY)
        self._known[place] = _Known(title, kept, (str(fault),))
        self._count_fault(fault.reason)
        log.warning("a GreenPolicy cannot be read", policy=title, reason=str(fault), counts=source)


class _Unreadable(BadInput):
    """A spec that cannot be read, and the kind of fault."""

    def __init__(self, text: str, reason: PolicyFault) -> None:
        super().__init__(text)
        self.reason = reason


def _spec(raw: msgspec.Raw) -> Mapping[str, Any]:
    try:
        spec = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as fault:
        raise _Unreadable(f"spec: {fault}", PolicyFault.SPEC) from None
    if not isinstance(spec, dict | None):
        text = f"spec: expected an object, found {type(spec).__name__}"
        raise _Unreadable(text, PolicyFault.SPEC)
    return spec or {}


def _weights(spec: Mapping[str, Any]) -> Weights:
    given = spec.get("weights")
    try:
        return WEIGHTS.read({} if given is None else given, "spec.weights")
    except BadInput as fault:
        raise _Unreadable(str(fault), PolicyFault.WEIGHTS) from None


def _bundle(spec: Mapping[str, Any]) -> str:
    """Return the ConfigMap of its bundle; "" if it names none, or not as the operator reads it."""
    when, bundle = spec.get("whenPolicy"), spec.get("bundle")
    if when is None or bundle is None:
        return ""
    try:
        is_model = WHEN_POLICY.read(when, "spec.whenPolicy") == ONNX
        return BUNDLE.read(bundle, "spec.bundle") if is_model else ""
    except BadInput:
        return ""  # the operator reports it; the weights count all the same
