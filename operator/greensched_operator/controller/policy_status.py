"""Writes into each GreenPolicy and JobPowerProfile whether it is followed as written."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import structlog

from greensched_core import labels
from greensched_core.clock import Clock
from greensched_core.custom_resources.policy_lookup import GREEN_POLICIES_PATH
from greensched_core.errors import ApiUnavailable
from greensched_core.kubernetes_api import ApiClient
from greensched_core.watching import SharedSink, Sink, Watch, as_it_is
from greensched_operator.holding.acceptance import (
    Acceptance,
    accept_policy,
    accept_profile,
    changed_status,
)
from greensched_operator.objects.green_policy import GreenPolicy
from greensched_operator.objects.job_power_profile import ParsedProfile
from greensched_operator.objects.policy_objects import PolicyObject, read_policy

log = structlog.get_logger()

_PERIOD_S = 5.0  # a bundle may come after the policy that names it


def policy_watch(
    client: ApiClient,
    objects: Sink[PolicyObject[GreenPolicy]],
    policies: Sink[GreenPolicy],
    wall: Clock,
) -> Watch[PolicyObject[GreenPolicy]]:
    """Return the single watch of GreenPolicies: `objects` get statuses, `policies` do not."""
    sink = SharedSink[PolicyObject[GreenPolicy]](
        (as_it_is, objects), (lambda seen: seen.spec, policies)
    )
    return Watch(client, GREEN_POLICIES_PATH, read_policy, sink, wall)


class PolicyStatus:
    """Writes the statuses of policies and profiles that have changed."""

    def __init__(
        self,
        client: ApiClient,
        wall: Clock,
        bundle_fault: Callable[[GreenPolicy], str | None],
        policies: Callable[[], list[PolicyObject[GreenPolicy]]],
        profiles: Callable[[], list[PolicyObject[ParsedProfile]]],
    ) -> None:
        self._client = client
        self._wall = wall
        self._bundle_fault = bundle_fault
        self._policies = policies
        self._profiles = profiles

    async def run(self) -> None:
        """Check every few seconds, until cancelled."""
        while True:
            for policy in self._policies():
                accepted = accept_policy(policy.spec, self._bundle_fault(policy.spec))
                await self._write(labels.GREEN_POLICIES, policy, accepted)
            for profile in self._profiles():
                accepted = accept_profile(profile.spec)
                await self._write(labels.JOB_POWER_PROFILES, profile, accepted)
            await asyncio.sleep(_PERIOD_S)

    async def _write(self, plural: str, seen: PolicyObject[Any], accepted: Acceptance) -> None:
        status = changed_status(seen.status, seen.generation, accepted, self._wall.now())
        if status is None:
            return
        path = f"{labels.API}/namespaces/{seen.namespace}/{plural}/{seen.name}/status"
        try:
            await self._client.patch(path, msgspec.json.encode({"status": status}))
        except ApiUnavailable as fault:
            if fault.status != 404:
                log.warning("status could not be written", path=path, reason=str(fault))
