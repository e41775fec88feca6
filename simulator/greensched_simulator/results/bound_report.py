"""Compares policies with the lower bound on a world's energy, carbon and cost."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from greensched_simulator.bounds.bound import least_bill
from greensched_simulator.bounds.inputs import SignalName
from greensched_simulator.bounds.limits import Limits, limits_of
from greensched_simulator.policy import Policy
from greensched_simulator.results.comparison import captured_pct
from greensched_simulator.runs.outcome import Outcome, outcome_of
from greensched_simulator.runs.simulation import bill_of, billed_until_s, simulate
from greensched_simulator.world.services import is_replica
from greensched_simulator.world.world import World

_J_PER_KWH = 3_600_000.0


class BoundedRun(NamedTuple):
    """One policy compared with a bound."""

    policy: str
    total: float
    gap_pct: float | None  # above the bound, relative to it; None: the bound is 0
    # Share of the baseline's distance to the bound; None: the baseline, or no distance.
    captured_pct: float | None
    missed: int  # deadlines


class BoundedFigure(NamedTuple):
    """The bound of one figure, in `unit`, and the policies' totals."""

    name: str
    unit: str
    bound: float
    idle: float
    variables: int
    runs: tuple[BoundedRun, ...]


class Bounded(NamedTuple):
    """A world's bounds over one window."""

    billed_s: float
    limits: Limits  # of all compared policies, so that the bound holds for each
    fails: bool  # whether nodes may fail
    lives_pct: float | None  # share of replicas' lives in the bound; None: no replicas
    figures: tuple[BoundedFigure, ...]


def bounded(
    world: World, policies: Sequence[Policy], slot_s: float, *, preempt: bool = False
) -> Bounded:
    """Return the bounds on a world's energy, carbon and cost, and the policies' totals.

    The first policy is the baseline. Raises BadInput if no schedule exists or a grid has gaps.
    """
    schedules = [simulate(world, policy) for policy in policies]
    until_s = billed_until_s(world, *schedules)
    limits = limits_of(world, *schedules)
    outcomes = [
        outcome_of(world, schedule, bill_of(world, schedule, until_s), until_s)
        for schedule in schedules
    ]
    scales: dict[SignalName, tuple[str, float]] = {
        "energy": ("kWh", _J_PER_KWH),
        "carbon": ("kg", 1000.0),
        "cost": (world.currency, 1.0),
    }
    figures = []
    for signal, (unit, scale) in scales.items():
        least = least_bill(world, signal, until_s, limits, slot_s=slot_s, preempt=preempt)
        totals = [_total(outcome, signal) for outcome in outcomes]
        runs = tuple(
            BoundedRun(
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
    return Bounded(
        until_s, limits, world.outages.node.size > 0, _lives_pct(world, limits), (*figures,)
    )


def _lives_pct(world: World, limits: Limits) -> float | None:
    whole_s = float(world.jobs.runtime_s[is_replica(world.jobs)].sum())
    sure_s = float((limits.lives.end_s - limits.lives.begin_s).sum())
    return 100.0 * sure_s / whole_s if whole_s else None


def _total(outcome: Outcome, signal: SignalName) -> float:
    return {"energy": outcome.energy_j, "carbon": outcome.carbon_g, "cost": outcome.cost}[signal]


def _gap_pct(total: float, least: float) -> float | None:
    return 100.0 * (total - least) / abs(least) if least else None


def _captured_pct(baseline: float, total: float, least: float) -> float | None:
    share = float(captured_pct(baseline, total, least))
    return None if math.isnan(share) else share
