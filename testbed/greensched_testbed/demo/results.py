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
    pods_placed: int
    place_median_s: float  # created → bound, as the watch saw it; real seconds
    place_p95_s: float
    nodes_used: int
    bill: Bill
    by_generation: Mapping[str, Group]
    by_zone: Mapping[str, Group]
    placed_at: tuple[tuple[float, str], ...]  # (workload seconds, zone) of each pod, by time

    @property
    def pods_unplaced(self) -> int:
        """Pods that found no node before the run ended."""
        return self.pods - self.pods_placed


def change_pct(ours: float, theirs: float) -> float | None:
    """Return by how many percent `ours` differs from `theirs`; None where theirs is 0."""
    return 100.0 * (ours - theirs) / abs(theirs) if theirs else None


def summary(ours: RunResult, default: RunResult) -> dict[str, Any]:
    """Return the figures of `summary.json`: percentages are ours against the default scheduler.

    `active` is above idle, as in the tables; `default_…` is the default scheduler's run.

    What is not known, such as the time to place no pod, is None: JSON has no NaN.
    """
    figures = {
        "pods": ours.pods,
        "pods_unplaced": ours.pods_unplaced,
        "default_pods_unplaced": default.pods_unplaced,
        **_bill_figures("", ours.bill),
        **_bill_figures("default_", default.bill),
        "energy_vs_default_pct": change_pct(ours.bill.energy_j, default.bill.energy_j),
        "cost_vs_default_pct": change_pct(ours.bill.cost, default.bill.cost),
        "carbon_vs_default_pct": change_pct(ours.bill.carbon_g, default.bill.carbon_g),
        "energy_active_vs_default_pct": change_pct(
            ours.bill.energy_active_j, default.bill.energy_active_j
        ),
        "cost_active_vs_default_pct": change_pct(ours.bill.cost_active, default.bill.cost_active),
        "carbon_active_vs_default_pct": change_pct(
            ours.bill.carbon_active_g, default.bill.carbon_active_g
        ),
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
