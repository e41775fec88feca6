"""What one run of the demo came to, and how two of them compare."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from greensched_core.units import kwh_from_joules


@dataclass(frozen=True, slots=True)
class Bill:
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

    def __add__(self, other: "Bill") -> "Bill":
        """Return the sum, line by line."""
        mine, theirs = asdict(self), asdict(other)
        return Bill(**{line: mine[line] + theirs[line] for line in mine})


@dataclass(frozen=True, slots=True)
class Group:
    """What fell on one hardware generation or one grid zone."""

    nodes: int
    nodes_used: int
    pods: int
    bill: Bill


@dataclass(frozen=True, slots=True)
class RunResult:
    """One workload under one scheduler."""

    scheduler: str
    pods: int
    unplaced: frozenset[int]  # places in the workload of the pods that found no node in time
    place_median_s: float  # created → bound, as the watch saw it; real seconds
    place_p95_s: float
    nodes_used: int
    bill: Bill
    by_generation: Mapping[str, Group]
    by_zone: Mapping[str, Group]
    placed_at: tuple[tuple[float, str], ...]  # (workload seconds, zone) of each pod, by time

    @property
    def pods_placed(self) -> int:
        """Pods that found a node before the run ended."""
        return self.pods - len(self.unplaced)


def did_the_same(ours: RunResult, default: RunResult) -> bool:
    """Tell whether both runs placed the same pods: else who did less work would seem to save."""
    return ours.unplaced == default.unplaced


def change_pct(ours: float, theirs: float) -> float | None:
    """Return by how many percent `ours` differs from `theirs`; None where theirs is 0."""
    return 100.0 * (ours - theirs) / abs(theirs) if theirs else None


def summary(ours: RunResult, default: RunResult) -> dict[str, Any]:
    """Return the figures of `summary.json`: percentages are ours against the default scheduler.

    `active` is above idle, as in the tables; `default_…` is the default scheduler's run.

    What is not known, such as the time to place no pod, is None: JSON has no NaN. So are the
    percentages where the runs did not place the same pods.
    """
    mine, theirs = ours.bill, default.bill

    def change(line: str) -> float | None:
        is_fair = did_the_same(ours, default)
        return change_pct(getattr(mine, line), getattr(theirs, line)) if is_fair else None

    figures = {
        "pods": ours.pods,
        "pods_unplaced": len(ours.unplaced),
        "default_pods_unplaced": len(default.unplaced),
        **_bill_figures("", mine),
        **_bill_figures("default_", theirs),
        "energy_vs_default_pct": change("energy_j"),
        "cost_vs_default_pct": change("cost"),
        "carbon_vs_default_pct": change("carbon_g"),
        "energy_active_vs_default_pct": change("energy_active_j"),
        "cost_active_vs_default_pct": change("cost_active"),
        "carbon_active_vs_default_pct": change("carbon_active_g"),
        "nodes_used": ours.nodes_used,
        "default_nodes_used": default.nodes_used,
        "place_median_s": ours.place_median_s,
        "default_place_median_s": default.place_median_s,
    }
    return {name: None if _is_nan(figure) else figure for name, figure in figures.items()}


def _bill_figures(prefix: str, bill: Bill) -> dict[str, float]:
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
