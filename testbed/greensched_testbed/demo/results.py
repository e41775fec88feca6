"""The results of the demo's runs, and their comparison."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from greensched_core.units import kwh_from_joules
from greensched_testbed.changes import change_pct


@dataclass(frozen=True, slots=True)
class BillSums:
    """Energy in joules, cost in the grid's currency, carbon in grams; above idle, and idle."""

    energy_active_j: float = 0.0
    energy_idle_j: float = 0.0
    cost_active: float = 0.0
    cost_idle: float = 0.0
    carbon_active_g: float = 0.0
    carbon_idle_g: float = 0.0

    @property
    def energy_j(self) -> float:
        """Total joules."""
        return self.energy_active_j + self.energy_idle_j

    @property
    def cost(self) -> float:
        """Total cost."""
        return self.cost_active + self.cost_idle

    @property
    def carbon_g(self) -> float:
        """Total grams of CO2-equivalent."""
        return self.carbon_active_g + self.carbon_idle_g

    def __add__(self, other: "BillSums") -> "BillSums":
        """Return the sum, line by line."""
        mine, theirs = asdict(self), asdict(other)
        return BillSums(**{line: mine[line] + theirs[line] for line in mine})


@dataclass(frozen=True, slots=True)
class GroupSums:
    """The share of one hardware generation or one grid zone."""

    nodes: int
    nodes_used: int
    pods: int
    bill: BillSums


@dataclass(frozen=True, slots=True)
class DemoResult:
    """One workload under one scheduler."""

    scheduler: str
    pods: int
    unplaced: frozenset[int]  # indices in the workload of pods that found no node in time
    place_median_s: float  # created → bound, as the watch saw it, in real seconds
    place_p95_s: float
    nodes_used: int
    bill: BillSums
    by_generation: Mapping[str, GroupSums]
    by_zone: Mapping[str, GroupSums]
    placed_at: tuple[tuple[float, str], ...]  # (workload seconds, zone) of each pod, by time

    @property
    def pods_placed(self) -> int:
        """Number of pods that found a node before the run ended."""
        return self.pods - len(self.unplaced)


@dataclass(frozen=True, slots=True)
class HeldPod:
    """One held pod; times in seconds of the workload."""

    name: str
    zone: str  # grid zone in which it ran
    arrived_s: float
    started_s: float
    runtime_s: float
    reason: str  # why it was released
    cpu_cores: float
    carbon_g_per_kwh: float  # mean of its grid while it ran
    at_once_carbon_g_per_kwh: float  # the same for a start on arrival

    @property
    def waited_s(self) -> float:
        """Seconds from its creation until it had a node."""
        return self.started_s - self.arrived_s


@dataclass(frozen=True, slots=True)
class Holding:
    """The effect of holding in a run."""

    may_wait: int  # pods with a deadline
    pods: tuple[HeldPod, ...]  # held for a later start, and started; by arrival
    started_for: Mapping[str, int]  # number of these by the reason of their release
    at_latest_start: int
    deadlines_missed: int  # by pods that may wait

    @property
    def wait_mean_s(self) -> float:
        """Mean seconds that held pods waited; NaN if none was held."""
        return fmean(pod.waited_s for pod in self.pods) if self.pods else math.nan

    @property
    def wait_longest_s(self) -> float:
        """Longest seconds that a held pod waited; NaN if none was held."""
        return max((pod.waited_s for pod in self.pods), default=math.nan)

    @property
    def carbon_g_per_kwh(self) -> float:
        """Mean over held pods of their grid's, weighted by core seconds; NaN if none was held."""
        return self._weighed([pod.carbon_g_per_kwh for pod in self.pods])

    @property
    def at_once_carbon_g_per_kwh(self) -> float:
        """The same for a start on arrival."""
        return self._weighed([pod.at_once_carbon_g_per_kwh for pod in self.pods])

    def _weighed(self, values: Sequence[float]) -> float:
        return (
            fmean(values, [pod.cpu_cores * pod.runtime_s for pod in self.pods])
            if values
            else math.nan
        )


@dataclass(frozen=True, slots=True)
class ThreeRuns:
    """The same work, three times: by default, placed by GreenSched, and also held by it.

    Placing saves the difference of `at_once` to `default`, waiting that of `held` to `at_once`.
    """

    default: DemoResult
    at_once: DemoResult
    held: DemoResult
    holding: Holding


def placed_same_pods(ours: DemoResult, default: DemoResult) -> bool:
    """Return whether both placed the same pods; otherwise less work would look like a saving."""
    return ours.unplaced == default.unplaced


def demo_summary(outcome: ThreeRuns) -> dict[str, Any]:
    """Return the figures of `summary.json`; those without prefix are of the run with holding.

    `active` means above idle, as in the tables. `default_…` is the default scheduler's run,
    `at_once_…` the one placed by GreenSched without holding. Percentages name their baseline.

    Unknown values, such as the time to place if no pod was placed, are None: JSON has no NaN.
    Percentages are None if the two runs did not place the same pods.
    """
    held, at_once, default = outcome.held, outcome.at_once, outcome.default
    figures = {
        "pods": held.pods,
        "pods_unplaced": len(held.unplaced),
        "at_once_pods_unplaced": len(at_once.unplaced),
        "default_pods_unplaced": len(default.unplaced),
        **_bill_figures("", held.bill),
        **_bill_figures("at_once_", at_once.bill),
        **_bill_figures("default_", default.bill),
        **_changes("", "_vs_default_pct", held, default),
        **_changes("at_once_", "_vs_default_pct", at_once, default),
        **_changes("", "_vs_at_once_pct", held, at_once),
        "nodes_used": held.nodes_used,
        "at_once_nodes_used": at_once.nodes_used,
        "default_nodes_used": default.nodes_used,
        "place_median_s": held.place_median_s,
        "at_once_place_median_s": at_once.place_median_s,
        "default_place_median_s": default.place_median_s,
        **_holding_figures(outcome.holding),
    }
    return {name: None if _is_nan(figure) else figure for name, figure in figures.items()}


def _changes(
    prefix: str, suffix: str, ours: DemoResult, theirs: DemoResult
) -> Mapping[str, float | None]:
    is_fair = placed_same_pods(ours, theirs)
    lines = {
        "energy": "energy_j", "cost": "cost", "carbon": "carbon_g",
        "energy_active": "energy_active_j", "cost_active": "cost_active",
        "carbon_active": "carbon_active_g",
    }  # fmt: skip
    return {
        f"{prefix}{name}{suffix}": change_pct(getattr(ours.bill, line), getattr(theirs.bill, line))
        if is_fair
        else None
        for name, line in lines.items()
    }


def _holding_figures(holding: Holding) -> Mapping[str, float]:
    return {
        "may_wait": holding.may_wait,
        "held": len(holding.pods),
        "wait_mean_s": holding.wait_mean_s,
        "wait_longest_s": holding.wait_longest_s,
        "held_grid_carbon_g_per_kwh": holding.carbon_g_per_kwh,
        "held_grid_carbon_at_once_g_per_kwh": holding.at_once_carbon_g_per_kwh,
        "at_latest_start": holding.at_latest_start,
        "deadlines_missed": holding.deadlines_missed,
    }


def _bill_figures(prefix: str, bill: BillSums) -> dict[str, float]:
    return {
        f"{prefix}energy_kwh": kwh_from_joules(bill.energy_j),
        f"{prefix}energy_active_kwh": kwh_from_joules(bill.energy_active_j),
        f"{prefix}cost_eur": bill.cost,
        f"{prefix}cost_active_eur": bill.cost_active,
        f"{prefix}carbon_kg": bill.carbon_g / 1e3,
        f"{prefix}carbon_active_kg": bill.carbon_active_g / 1e3,
    }


def _is_nan(figure: float | None) -> bool:
    return figure is not None and math.isnan(figure)
