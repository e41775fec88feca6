"""Several policies on the same worlds: their figures side by side, and paired differences."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from greensched_core.errors import BadInput
from greensched_simulator.outcome import Outcome, outcome_of
from greensched_simulator.policy import Policy
from greensched_simulator.scenario_model import Scenario
from greensched_simulator.simulation import Schedule, bill_of, billed_until_s, simulate
from greensched_simulator.world import World, build_world

CONFIDENCE = 0.95

Told = Callable[[Policy, int], None]  # the policy and the seed whose run has just ended


class Round(NamedTuple):
    """All policies on one world; all are billed for the same time."""

    world: World
    schedules: tuple[Schedule, ...]  # one a policy
    outcomes: tuple[Outcome, ...]


class Figure(NamedTuple):
    """One figure of an outcome, as comparisons tell it."""

    name: str
    of: Callable[[Outcome], float]
    is_better_low: bool = True


class Difference(NamedTuple):
    """One policy's figure and its change against the baseline, over all seeds."""

    mean: float
    change_pct: float  # mean over seeds of the change of each; NaN where the baseline is 0
    low_pct: float  # ends of the 95 % interval of that mean; NaN with one seed
    high_pct: float


FIGURES = (
    Figure("energy_j", lambda outcome: outcome.energy_j),
    Figure("cost", lambda outcome: outcome.cost),
    Figure("carbon_g", lambda outcome: outcome.carbon_g),
    Figure("slowdown_mean", lambda outcome: outcome.slowdown_mean),
)


def compare(
    scenario: Scenario, policies: Sequence[Policy], seeds: Sequence[int], told: Told
) -> Iterator[Round]:
    """Yield the policies' runs on the scenario's world, seed by seed; tell of each run's end."""
    for seed in seeds:
        world = build_world(scenario, seed)
        schedules = []
        for policy in policies:
            schedules.append(simulate(world, policy))
            told(policy, seed)
        until_s = billed_until_s(world, *schedules)
        outcomes = tuple(
            outcome_of(world, schedule, bill_of(world, schedule, until_s), until_s)
            for schedule in schedules
        )
        yield Round(world, tuple(schedules), outcomes)


def difference(figure: Figure, ours: Sequence[Outcome], baseline: Sequence[Outcome]) -> Difference:
    """Return a figure's paired change against the baseline; one outcome a seed, in one order.

    The interval is Student's, of the mean of the seeds' changes: it tells how much the seeds vary,
    not how other clusters or grids would do. Raises BadInput when the numbers of seeds differ.
    """
    if len(ours) != len(baseline) or not ours:
        raise BadInput("a comparison needs the same seeds for both policies")
    mine = np.array([figure.of(outcome) for outcome in ours])
    theirs = np.array([figure.of(outcome) for outcome in baseline])
    with np.errstate(all="ignore"):
        changes = np.where(theirs == 0.0, np.nan, 100.0 * (mine - theirs) / np.abs(theirs))
    mean = float(changes.mean())
    if changes.size < 2:
        return Difference(float(mine.mean()), mean, np.nan, np.nan)
    half = stats.t.ppf(0.5 + CONFIDENCE / 2, changes.size - 1) * changes.std(ddof=1)
    half /= np.sqrt(changes.size)
    return Difference(float(mine.mean()), mean, float(mean - half), float(mean + half))
