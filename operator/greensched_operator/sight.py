"""What a replica sees: how its watches do, and whether another might see more.

An API server that is away blinds all alike, and nothing here answers to it but readiness. Who is
refused leaves the Lease, for whose rights suffice; one whose do not stands back for a while.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

import msgspec
import structlog
from prometheus_client import Gauge

from greensched_core.clock import Clock
from greensched_core.errors import ApiUnavailable
from greensched_core.kubernetes_api import ApiClient
from greensched_core.watching import WatchHealth

log = structlog.get_logger()

_REFUSED = (401, 403)
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_STUCK_S = 600.0  # a watch that lives does or hears something every two minutes, kopf's every five
_LEASES_REFUSED = 4.0  # then it is no hiccup of an authorizer
_LEASES_OF_THE_BLIND = 40.0  # who took it for want of a better one lets others try so much later


class Followed(Protocol):
    """A watch that keeps something current."""

    @property
    def path(self) -> str:
        """Return what it follows."""
        ...

    @property
    def health(self) -> WatchHealth:
        """Return how it does."""
        ...


class Sight:
    """All watches of a leader."""

    def __init__(self, watches: Sequence[Followed], lease_s: float, clock: Clock) -> None:
        self._watches = watches
        self._lease_s = lease_s
        self._clock = clock
        self.refused = asyncio.Event()

    def begin(self, age: Gauge) -> None:
        """Count from now, and show the age of each resource's oldest watch."""
        now = self._clock.monotonic()
        for each in self._watches:
            each.health.lost_at = each.health.moved_at = now
        for name in {_resource(each.path) for each in self._watches}:
            of_it = [each for each in self._watches if _resource(each.path) == name]
            age.labels(name).set_function(
                lambda of_it=of_it: max(one.health.age_s(self._clock) for one in of_it)  # type: ignore[misc]  # bound early
            )

    def unseen(self) -> str:
        """Return "" while all is seen, else what is not, for how long and by which refusal."""
        lost = [
            f"{each.path} for {each.health.age_s(self._clock):.0f} s"
            + (f" (HTTP {each.health.status})" if each.health.status else "")
            for each in self._watches
            if each.health.age_s(self._clock) > self._lease_s
        ]
        return f"does not see {', '.join(lost)}" if lost else ""

    def stuck(self) -> str:
        """Return "" while each watch moves, were it only to try again; else which does not."""
        now = self._clock.monotonic()
        still = [one.path for one in self._watches if now - one.health.moved_at > _STUCK_S]
        return f"stuck: {', '.join(still)}" if still else ""

    async def run(self, *, is_blind: bool) -> None:
        """Set `refused` once one was refused for long; `is_blind` tells that it began so."""
        leases = _LEASES_OF_THE_BLIND if is_blind else _LEASES_REFUSED
        while True:
            await asyncio.sleep(self._lease_s / 3)
            for each in self._watches:
                health = each.health
                is_long = health.age_s(self._clock) > leases * self._lease_s
                if health.status in _REFUSED and is_long and not self.refused.is_set():
                    log.error("the Lease is left: another may see more", refused=each.path)
                    self.refused.set()

    async def may_see(self, client: ApiClient) -> bool:
        """Tell whether we have the right to list and watch all that a leader must."""
        paths = {each.path for each in self._watches}
        asked = (_is_allowed(client, path, verb) for path in paths for verb in ("list", "watch"))
        return all(await asyncio.gather(*asked))


def _resource(path: str) -> str:
    return path.rpartition("/")[2]


async def _is_allowed(client: ApiClient, path: str, verb: str) -> bool:
    parts = path.strip("/").split("/")
    group = parts[1] if parts[0] == "apis" else ""
    about = {"group": group, "resource": parts[-1], "verb": verb}
    if "namespaces" in parts[:-1]:
        about["namespace"] = parts[parts.index("namespaces") + 1]
    body = msgspec.json.encode({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": about},
    })  # fmt: skip
    try:
        review = msgspec.json.decode(await client.create(_REVIEWS, body))
    except ApiUnavailable as fault:
        return fault.status not in _REFUSED
    return bool(review.get("status", {}).get("allowed"))
