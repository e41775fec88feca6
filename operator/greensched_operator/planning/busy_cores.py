"""How busy the cluster was over the last day: the mean share of cores that pods request."""

from collections.abc import Iterable, Sequence

from greensched_operator.planning.cluster_state import Zone
from greensched_policies.planning.held_start import mean_busy_share
from greensched_policies.planning.planning import Running


class BusyCores:
    """The mean share of busy cores since `since_s`, at most over about the last day."""

    def __init__(self, since_s: float) -> None:
        self._mean, self._since_s, self._last_s = 0.0, since_s, since_s

    def note(self, zones: Sequence[Zone], running: Iterable[Running], now_s: float) -> float:
        """Count what runs now as running since the last call, and return the mean."""
        cores = sum(zone.cpu_cores for zone in zones)
        busy = sum(run.cpu_cores for run in running) / cores if cores else 0.0
        self._mean = mean_busy_share(self._mean, busy, self._since_s, self._last_s, now_s)
        self._last_s = max(self._last_s, now_s)
        return self._mean
