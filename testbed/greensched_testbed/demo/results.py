"""What one run of the demo came to, and how two of them compare."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from greensched_core.units import kwh_from_joules


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
        """Joules in all."""
        return self.energy_active_j + self.energy_idle_j

    @property
    def cost(self) -> float:
        """Money in all."""
        return self.cost_active + self.cost_idle

    @property
    def carbon_g(self) -> float:
        """Grams of CO2-equivalent in all."""
        return self.carbon_active_g + self.carbon_idle_g

    def __add__(self, other: "BillSums") -> "BillSums":
        """Return the sum, line by line."""
        mine, theirs = asdict(self), asdict(other)
        return BillSums(**{line: mine[line] + theirs[line] for line in mine})


@dataclass(frozen=True, slots=True)
class GroupSums:
    """What fell on one hardware generation or one grid zone."""

    nodes: int
    nodes_used: int
    pods: int
    bill: BillSums


@dataclass(frozen=True, slots=True)
class DemoResult:
    """One workload under one scheduler."""

    scheduler: str
    pods: int
    unplaced: frozenset[int]  # places in the workload of the pods that found no node in time
    place_median_s: float  # created → bound, as the watch saw it; real seconds
    place_p95_s: float
    nodes_used: int
    bill: BillSums
    by_generation: Mapping[str, GroupSums]
    by_zone: Mapping[str, GroupSums]
    placed_at: tuple[tuple[float, str], ...]  # (workload seconds, zone) of each pod, by time

    @property
    def pods_placed(self) -> int:
        """Pods that found a node before the run ended."""
        return self.pods - len(self.unplaced)


@dataclass(frozen=True, slots=True)
class HeldPod:
    """One pod that was held; seconds of the workload."""

    name: str
    zone: str  # of the grid, in which it ran
    arrived_s: float
    started_s: float
    runtime_s: float
    reason: str  # why it was started
    cpu_cores: float
    carbon_g_per_kwh: float  # of the grid, on the mean while it ran
    at_once_carbon_g_per_kwh: float  # the same, had it started as it arrived

    @property
    def waited_s(self) -> float:
        """From when it was created to when it had a node."""
        return self.started_s - self.arrived_s


@dataclass(frozen=True, slots=True)
class Holding:
    """What holding did in a run."""

    may_wait: int  # pods with a deadline
    pods: tuple[HeldPod, ...]  # those that were held for later and have started, by arrival
    started_for: Mapping[str, int]  # these by the reason of their start
    at_latest_start: int
    deadlines_missed: int  # of those that may wait

    @property
    def wait_mean_s(self) -> float:
        """Seconds that a held pod waited on the mean; NaN where none was held."""
        return fmean(pod.waited_s for pod in self.pods) if self.pods else math.nan

    @property
    def wait_longest_s(self) -> float:
        """Seconds that a held pod waited at most; NaN where none was held."""
        return max((pod.waited_s for pod in self.pods), default=math.nan)

    @property
    def carbon_g_per_kwh(self) -> float:
        """Of the grid while the held pods ran, weighed by their core seconds; NaN without any."""
        return self._weighed([pod.carbon_g_per_kwh for pod in self.pods])

    @property
    def at_once_carbon_g_per_kwh(self) -> float:
        """The same, had each started as it arrived."""
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

    What placing saves is `at_once` against `default`; what waiting saves, `held` against `at_once`.
    """

    default: DemoResult
    at_once: DemoResult
    held: DemoResult
    holding: Holding


def did_the_same(ours: DemoResult, default: DemoResult) -> bool:
    """Tell whether both runs placed the same pods: else who did less work would seem to save."""
    return ours.unplaced == default.unplaced


def change_pct(ours: float, theirs: float) -> float | None:
    """Return by how many percent `ours` differs from `theirs`; None where theirs is 0."""
    return 100.0 * (ours - theirs) / abs(theirs) if theirs else None


def summary(outcome: ThreeRuns) -> dict[str, Any]:
    """Return the figures of `summary.json`: GreenSched's are of the run in which it also held work.

    `active` is above idle, as in the tables; `default_…` is the default scheduler's run, and
    `at_once_…` the one that GreenSched placed without holding. Percentages name their baseline.

    What is not known, such as the time to place no pod, is None: JSON has no NaN. So are the
    percentages where the two runs did not place the same pods.
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
    is_fair = did_the_same(ours, theirs)
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
