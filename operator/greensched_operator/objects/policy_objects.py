"""GreenPolicies and JobPowerProfiles as watches bring them: what they say, and their status."""

from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from greensched_core import labels
from greensched_core.clock import Clock
from greensched_core.kubernetes_api import ApiClient
from greensched_core.watching import Sink, Watch
from greensched_operator.objects.green_policy import GreenPolicy, parse
from greensched_operator.objects.job_power_profile import JobPowerProfile, ParsedProfile
from greensched_operator.objects.job_power_profile import parse_job_power_profile as parse_profile
from greensched_operator.objects.resource_fields import decoded_object, read_meta
from greensched_operator.objects.watched import Objects

Spec = TypeVar("Spec")

_JOB_POWER_PROFILES = f"{labels.API}/{labels.JOB_POWER_PROFILES}"


@dataclass(frozen=True, slots=True)
class PolicyObject(Generic[Spec]):
    """The latest state of a GreenPolicy or JobPowerProfile: its parsed spec, and its status."""

    namespace: str
    name: str
    generation: int
    spec: Spec
    status: object


def read_policy(raw: bytes | msgspec.Raw) -> PolicyObject[GreenPolicy]:
    """Return a GreenPolicy with its faults and status; raises BadInput if it is no JSON object."""
    whole = decoded_object(bytes(raw))
    policy = parse(whole)
    return PolicyObject(
        policy.namespace, policy.name, policy.generation, policy, whole.get("status")
    )


def read_profile(raw: bytes | msgspec.Raw) -> PolicyObject[ParsedProfile]:
    """Return a JobPowerProfile with its faults and status; raises BadInput as `read_policy`."""
    whole = decoded_object(bytes(raw))
    meta = read_meta(whole)
    return PolicyObject(
        meta.namespace, meta.name, meta.generation, parse_profile(whole), whole.get("status")
    )


def named_profile(
    profiles: Objects[PolicyObject[ParsedProfile]], namespace: str, name: str
) -> JobPowerProfile | None:
    """Return the JobPowerProfile of that name; None if there is none, or it has faults."""
    found = profiles.get(namespace, name) if name else None
    return None if found is None else found.spec.profile


def profile_watch(
    client: ApiClient, profiles: Sink[PolicyObject[ParsedProfile]], wall: Clock
) -> Watch[PolicyObject[ParsedProfile]]:
    """Return a watch of JobPowerProfiles."""
    return Watch(client, _JOB_POWER_PROFILES, read_profile, profiles, wall)
