"""How near some policies come to the least that a world's work can cost."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from greensched_simulator.bound import Freedom, freedom_of, latest_ends, least_bill
from greensched_simulator.bound_inputs import Signal
from greensched_simulator.comparison import captured_pct
from greensched_simulator.outcome import Outcome, outcome_of
from greensched_simulator.policy import Policy
from greensched_simulator.simulation import bill_of, billed_until_s, simulate
from greensched_simulator.world import World

_J_PER_KWH = 3_600_000.0


class Run(NamedTuple):
    """One policy beside a bound."""

    policy: str
    total: float
    gap_pct: float | None  # above the bound, relative to it; None: the bound is 0
    # share of the baseline's distance to the bound; None: the baseline, or there is no distance
    captured_pct: float | None
    missed: int  # deadlines


class BoundedFigure(NamedTuple):
    """The least that one figure can be, in `unit`, and what policies make of it."""

    name: str
    unit: str
    bound: float
    idle: float
    variables: int
    runs: tuple[Run, ...]


class Bounded(NamedTuple):
    """A world's bounds over one window."""

    billed_s: float
    freedom: Freedom  # what some policy does, and the bound thus allows
    figures: tuple[BoundedFigure, ...]


def bounded(
    world: World, policies: Sequence[Policy], slot_s: float, *, preempt: bool = False
) -> Bounded:
    """Return the least energy, carbon and cost of a world beside what policies take.

    The first policy is the baseline. Raises BadInput where no schedule exists or a grid has gaps.
    """
    schedules = [simulate(world, policy) for policy in policies]
    until_s = billed_until_s(world, *schedules)
    ends_s, freedom = latest_ends(world, *schedules), freedom_of(world, schedules)
    outcomes = [
        outcome_of(world, schedule, bill_of(world, schedule, until_s), until_s)
        for schedule in schedules
    ]
    scales: dict[Signal, tuple[str, float]] = {
        "energy": ("kWh", _J_PER_KWH),
        "carbon": ("kg", 1000.0),
        "cost": (world.currency, 1.0),
    }
    figures = []
    for signal, (unit, scale) in scales.items():
        least = least_bill(
            world, signal, until_s, ends_s, slot_s=slot_s, preempt=preempt, freedom=freedom
        )
        totals = [_total(outcome, signal) for outcome in outcomes]
        runs = tuple(
            Run(
                policy.name,
                total / scale,
                _gap_pct(total, least.total),
                _captured_pct(totals[0], total, least.total) if number else None,
                outcome.deadlines - outcome.deadlines_met,
            )
            for number, (policy, outcome, total) in enumerate(
                zip(policies, outcomes, totals, strict=True)
            )
        )
        figures.append(
            BoundedFigure(
                signal, unit, least.total / scale, least.idle / scale, least.variables, runs
            )
        )
    return Bounded(until_s, freedom, tuple(figures))


def _total(outcome: Outcome, signal: Signal) -> float:
    return {"energy": outcome.energy_j, "carbon": outcome.carbon_g, "cost": outcome.cost}[signal]


def _gap_pct(total: float, least: float) -> float | None:
    return 100.0 * (total - least) / abs(least) if least else None


def _captured_pct(baseline: float, total: float, least: float) -> float | None:
    share = float(captured_pct(baseline, total, least))
    return None if math.isnan(share) else share
