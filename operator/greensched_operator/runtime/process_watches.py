"""What a process sees: the state of its watches, and whether another replica might see more.

If the API server is away, all replicas see nothing; then only readiness fails. A leader whose
watch is refused gives up the Lease for a replica with sufficient rights. A replica without them
leaves a free Lease to others for a while.
"""

import asyncio
from typing import Protocol

import structlog
from prometheus_client import Gauge

from greensched_core.clock import Clock
from greensched_core.kubernetes_api import ApiClient
from greensched_core.watching import WatchHealth
from greensched_operator.runtime.rights import REFUSED, may

log = structlog.get_logger()

_BLIND_S = 30.0
_STUCK_S = 600.0  # a live watch does or receives something every two minutes, kopf's every five
_LEASES_REFUSED = 4.0  # longer than a hiccup of an authorizer
_LEASES_OF_THE_BLIND = 40.0  # then a replica that leads although it sees too little gives up


class Followed(Protocol):
    """A watch whose health can be read."""

    @property
    def path(self) -> str:
        """Return the path that it watches."""
        ...

    @property
    def health(self) -> WatchHealth:
        """Return its state."""
        ...


class ProcessWatches:
    """All watches of a process."""

    def __init__(self, watches: list[Followed], lease_s: float, clock: Clock) -> None:
        """`watches` are those that a leader needs; the list may grow until `begin`."""
        self._optional: list[Followed] = []
        self._watches = watches
        self._age: Gauge | None = None
        self._lease_s = lease_s
        self._clock = clock
        self.refused = asyncio.Event()

    def begin(self, age: Gauge) -> None:
        """Measure ages from now on, and show that of each resource's oldest watch."""
        self._age = age
        for each in self._watches:
            self._count(each)

    def follow(self, *watches: Followed) -> None:
        """Report on these watches too; a process that is refused one keeps its Lease."""
        self._optional.extend(watches)
        for each in watches:
            self._count(each)

    def _count(self, watch: Followed) -> None:
        watch.health.lost_at = watch.health.moved_at = self._clock.monotonic()
        if self._age is not None:
            name = _resource(watch.path)
            self._age.labels(name).set_function(lambda: self._oldest_s(name))

    def _oldest_s(self, name: str) -> float:
        of_it = (each for each in self._all() if _resource(each.path) == name)
        return max(each.health.age_s(self._clock) for each in of_it)

    def _all(self) -> list[Followed]:
        return [*self._watches, *self._optional]

    def sees(self) -> bool:
        """Return whether all watches were listed and none has been lost for 30 seconds."""
        return all(
            each.health.synced and each.health.age_s(self._clock) < _BLIND_S
            for each in self._watches
        )

    def unseen(self) -> str:
        """Return "" while all watches are live, else which are not, since when and why."""
        lost = [
            f"{each.path} for {each.health.age_s(self._clock):.0f} s"
            + (f" (HTTP {each.health.status})" if each.health.status else "")
            for each in self._all()
            if each.health.age_s(self._clock) > self._lease_s
        ]
        return f"no live watch of {', '.join(lost)}" if lost else ""

    def stuck(self) -> str:
        """Return "" while each watch makes progress or retries; else which ones are stuck."""
        now = self._clock.monotonic()
        still = [one.path for one in self._all() if now - one.health.moved_at > _STUCK_S]
        return f"stuck watches: {', '.join(still)}" if still else ""

    async def run(self, *, is_blind: bool) -> None:
        """Set `refused` once a watch was refused for long; `is_blind` allows ten times as long."""
        leases = _LEASES_OF_THE_BLIND if is_blind else _LEASES_REFUSED
        while True:
            await asyncio.sleep(self._lease_s / 3)
            for each in self._watches:
                health = each.health
                is_long = health.age_s(self._clock) > leases * self._lease_s
                if health.status in REFUSED and is_long and not self.refused.is_set():
                    log.error(
                        "gives up the Lease: the API server refuses a watch; another replica may be"
                        " allowed",
                        refused=each.path,
                    )
                    self.refused.set()

    async def may_see(self, client: ApiClient) -> bool:
        """Return whether this process may list and watch all that a leader must see."""
        paths = {each.path for each in self._watches}
        asked = (may(client, verb, path) for path in paths for verb in ("list", "watch"))
        return all(await asyncio.gather(*asked))


def _resource(path: str) -> str:
    return path.rpartition("/")[2]
