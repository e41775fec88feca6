"""Says in each GreenPolicy and JobPowerProfile whether it is followed as it is written."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import structlog

from greensched_core import labels
from greensched_core.clock import Clock
from greensched_core.errors import ApiUnavailable, BadInput
from greensched_core.kubernetes_api import ApiClient
from greensched_operator.holding.acceptance import (
    Acceptance,
    accept_policy,
    accept_profile,
    changed_status,
)
from greensched_operator.objects.green_policy import GreenPolicy, parse
from greensched_operator.objects.job_power_profile import parse as parse_profile

log = structlog.get_logger()

JOB_POWER_PROFILES = f"/apis/{labels.GROUP}/{labels.VERSION}/{labels.JOB_POWER_PROFILES}"
_PERIOD_S = 5.0  # a bundle may come after the policy that names it


class _Meta(msgspec.Struct):
    name: str = ""
    namespace: str = ""
    generation: int = 0


class _Object(msgspec.Struct):
    metadata: _Meta
    status: dict[str, object] | None = None


_decode = msgspec.json.Decoder(_Object).decode


@dataclass(frozen=True, slots=True)
class Told:
    """One object as it was seen last: its raw JSON, and what it says of itself."""

    namespace: str
    name: str
    raw: bytes


def read_told(raw: bytes | msgspec.Raw) -> Told:
    """Return an object's name and all of it; raises BadInput where it has none."""
    try:
        meta = _decode(raw).metadata
    except (msgspec.DecodeError, UnicodeDecodeError) as fault:
        raise BadInput(f"no object: {fault}") from fault
    return Told(meta.namespace, meta.name, bytes(raw))


class PolicyStatus:
    """Writes the status of what it is given, where that has changed."""

    def __init__(
        self,
        client: ApiClient,
        wall: Clock,
        bundle_fault: Callable[[GreenPolicy], str | None],
        policies: Callable[[], list[Told]],
        profiles: Callable[[], list[Told]],
    ) -> None:
        self._client = client
        self._wall = wall
        self._bundle_fault = bundle_fault
        self._policies = policies
        self._profiles = profiles

    async def run(self) -> None:
        """Look every few seconds, until cancelled."""
        while True:
            for told in self._policies():
                policy = parse(told.raw)
                accepted = accept_policy(policy, self._bundle_fault(policy))
                await self._write(labels.GREEN_POLICIES, told, accepted)
            for told in self._profiles():
                accepted = accept_profile(parse_profile(told.raw))
                await self._write(labels.JOB_POWER_PROFILES, told, accepted)
            await asyncio.sleep(_PERIOD_S)

    async def _write(self, plural: str, told: Told, accepted: Acceptance) -> None:
        found = _decode(told.raw)
        status = changed_status(found.status, found.metadata.generation, accepted, self._wall.now())
        if status is None:
            return
        path = (
            f"/apis/{labels.GROUP}/{labels.VERSION}/namespaces/{told.namespace}/{plural}/"
            f"{told.name}/status"
        )
        try:
            await self._client.patch(path, msgspec.json.encode({"status": status}))
        except ApiUnavailable as fault:
            if fault.status != 404:
                log.warning("status not written", path=path, reason=str(fault))
