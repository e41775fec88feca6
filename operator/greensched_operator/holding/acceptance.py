"""Builds the status of a GreenPolicy or JobPowerProfile: whether it is followed as written."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from greensched_core.signals.timestamps import format_timestamp
from greensched_operator.objects.green_policy import BUILT_IN, GreenPolicy
from greensched_operator.objects.job_power_profile import ParsedProfile

CONDITION = "Accepted"
_MOST_MESSAGE = 1024  # characters; quotes of user input are short, but may be many


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Whether an object is followed as written, why not, and what applies instead."""

    is_accepted: bool
    reason: str  # one word in CamelCase, as conditions have it
    message: str


def accept_policy(policy: GreenPolicy, bundle_fault: str | None = None) -> Acceptance:
    """Judge a policy; `bundle_fault` says why its bundle cannot be used: missing or invalid."""
    if policy.faults:
        faults = "; ".join(policy.faults)
        message = f"{faults}. Until this is corrected, the built-in defaults apply: nothing is held"
        return Acceptance(False, "BadField", message)
    if bundle_fault is not None:
        name = policy.bundle_config_map
        bundle = f"bundle {name}" if name else "the shipped bundle"
        rule = BUILT_IN.when_policy
        message = f"{bundle} cannot be used: {bundle_fault}. The rule {rule} chooses starts instead"
        return Acceptance(False, "BundleUnusable", message)
    return Acceptance(True, "Followed", f"mode {policy.mode}, start chosen by {policy.when_policy}")


def accept_profile(parsed: ParsedProfile) -> Acceptance:
    """Judge a profile."""
    if parsed.profile is None:
        faults = "; ".join(parsed.faults)
        message = f"{faults}. Until this is corrected, its work is planned with constant power"
        return Acceptance(False, "BadField", message)
    checkpoints = sum(phase.is_checkpoint for phase in parsed.profile.work)
    message = f"a run takes {parsed.profile.runtime_s:g} s; checkpoints: {checkpoints}"
    return Acceptance(True, "Followed", message)


def changed_status(
    previous: object, generation: int, acceptance: Acceptance, now: float
) -> dict[str, Any] | None:
    """Return the status to write, or None if the previous one already says the same.

    `now` is in seconds since the Unix epoch. lastTransitionTime changes only with the verdict.
    """
    verdict = "True" if acceptance.is_accepted else "False"
    condition = {
        "type": CONDITION,
        "status": verdict,
        "reason": acceptance.reason,
        "message": acceptance.message[:_MOST_MESSAGE],
        "observedGeneration": generation,
    }
    before = _condition(previous)
    if before is not None and condition.items() <= before.items():
        return None
    since = before.get("lastTransitionTime") if before and before["status"] == verdict else None
    condition["lastTransitionTime"] = since or format_timestamp(int(now))
    return {"observedGeneration": generation, "conditions": [condition]}


def refusal_in(status: object) -> str:
    """Return the message of a status whose object is not followed as written, else ""."""
    found = _condition(status)
    return str(found.get("message", "")) if found is not None and found["status"] == "False" else ""


def _condition(status: object) -> Mapping[str, Any] | None:
    conditions = status.get("conditions") if isinstance(status, Mapping) else None
    for condition in conditions if isinstance(conditions, list) else ():
        if isinstance(condition, Mapping) and condition.get("type") == CONDITION:
            return condition if "status" in condition else None
    return None
