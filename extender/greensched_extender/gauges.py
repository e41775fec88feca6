"""Sets the gauges to the current state, each time the metrics are read."""

from collections.abc import Mapping
from typing import Any

from greensched_core.clock import Clock
from greensched_core.watching import WatchHealth
from greensched_extender.grid import OutlookCache
from greensched_extender.metrics import ExtenderMetrics
from greensched_extender.policy_choice import PolicyChoice
from greensched_extender.snapshot import Snapshot


class WatchesHealth:
    """Health of all watches; those of nodes and pods are needed, the others optional."""

    def __init__(
        self, clock: Clock, needed: Mapping[str, WatchHealth], optional: Mapping[str, WatchHealth]
    ) -> None:
        self._clock = clock
        self._needed = needed
        self.all = {**needed, **optional}

    def snapshot_age_s(self) -> float | None:
        """Return for how many seconds the snapshot may be stale; None before the first lists."""
        if not all(health.synced for health in self._needed.values()):
            return None
        return max(health.age_s(self._clock) for health in self._needed.values())

    def age_s(self, resource: str) -> float:
        """Return for how many seconds one watch has been lost."""
        return self.all[resource].age_s(self._clock)

    def missing(self) -> str:
        """Return a text that names the missing first lists; "" when all needed ones are done."""
        waiting = [name for name, health in self._needed.items() if not health.synced]
        return f"waiting for the first list of {', '.join(waiting)}" if waiting else ""

    def describe(self) -> dict[str, Any]:
        """Return each watch's state as JSON values."""
        return {
            name: {
                "synced": health.synced,
                "lostForSeconds": health.age_s(self._clock),
                "lists": health.lists,
                "undecodable": health.undecodable,
            }
            for name, health in self.all.items()
        }


class Gauges:
    """Sets the gauges from the parts that they describe."""

    def __init__(
        self,
        metrics: ExtenderMetrics,
        *,
        snapshot: Snapshot,
        watches: WatchesHealth,
        choice: PolicyChoice,
        grid: OutlookCache,
        clock: Clock,
    ) -> None:
        self._metrics = metrics
        self._snapshot = snapshot
        self._watches = watches
        self._choice = choice
        self._grid = grid
        self._clock = clock

    def set(self) -> None:
        """Set all gauges to their current values."""
        metrics, snapshot = self._metrics, self._snapshot
        snapshot.expire()
        metrics.snapshot_age.set(self._watches.snapshot_age_s() or 0.0)
        metrics.nodes.set(snapshot.node_count)
        metrics.unreadable_nodes.set(snapshot.unreadable_count)
        metrics.faulty_nodes.set(snapshot.faulty_count)
        metrics.measured_nodes.set(snapshot.measured_count)
        metrics.pods.set(snapshot.pod_count)
        metrics.provisional_pods.set(snapshot.provisional_count)
        metrics.reach(metrics.provisional_expired, snapshot.expired)
        for resource, health in self._watches.all.items():
            metrics.reach(metrics.watch_lists.labels(resource), health.lists)
            metrics.reach(metrics.undecodable_objects.labels(resource), health.undecodable)
            metrics.watch_synced.labels(resource).set(health.synced)
            metrics.watch_age.labels(resource).set(self._watches.age_s(resource))
        metrics.model_info.clear()
        metrics.model_info.labels(*self._choice.labels()).set(1)
        self._set_signals()

    def _set_signals(self) -> None:
        metrics, zones = self._metrics, self._snapshot.view().facts.zones
        metrics.signal_age.clear()  # a zone without nodes has no age
        for zone, signal in self._grid.now(zones, self._clock.now()).items():
            ages = {"carbon": signal.carbon_age_s, "price": signal.price_age_s}
            for kind, age_s in ages.items():
                if age_s is not None:
                    metrics.signal_age.labels(zone, kind).set(age_s)
