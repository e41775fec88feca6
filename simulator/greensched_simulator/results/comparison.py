"""Several policies on the same worlds: their figures side by side, and paired differences."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit  # Student's quantiles; scipy.stats takes a second to import

from greensched_core.errors import BadInput
from greensched_policies.costs.cost import Floats
from greensched_simulator.arrays.seeds import naming_seed
from greensched_simulator.bounds.bound import Least, least_totals
from greensched_simulator.policy import Policy
from greensched_simulator.results.cells import ConfidenceInterval
from greensched_simulator.runs.outcome import Outcome, outcome_of
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import (
    ProgressCallback,
    bill_of,
    billed_until_s,
    simulate_each,
)
from greensched_simulator.scenario.model import Scenario
from greensched_simulator.world.world import World, build_world, refuse_seeds

CONFIDENCE = 0.95
WORTH_TELLING = 1e-6  # of the baseline: what could be saved at all beyond rounding and the solver's


class Round(NamedTuple):
    """All policies on one world; all are billed for the same time."""

    world: World
    policies: tuple[Policy, ...]
    schedules: tuple[Schedule, ...]  # one a policy
    outcomes: tuple[Outcome, ...]
    least: Least | None = None  # what no schedule of this world is below; None: not asked for


class Results(NamedTuple):
    """What all runs came to."""

    policies: tuple[Policy, ...]
    baseline: Policy | None  # one of the policies; None: nothing is compared
    seeds: tuple[int, ...]
    outcomes: Mapping[Policy, tuple[Outcome, ...]]  # one a seed, in their order
    least: tuple[Least, ...] = ()  # one a seed, or none


class ComparedFigure(NamedTuple):
    """One figure of an outcome, as comparisons tell it; less of it is better."""

    name: str
    of: Callable[[Outcome], float]


class Difference(NamedTuple):
    """One policy's change of a figure against the baseline, paired by seed."""

    change: ConfidenceInterval  # in the figure's unit
    percent: ConfidenceInterval  # of each seed's baseline; NaN where that is 0


ENERGY = ComparedFigure("energy_j", lambda outcome: outcome.energy_j)
COST = ComparedFigure("cost", lambda outcome: outcome.cost)
CARBON = ComparedFigure("carbon_g", lambda outcome: outcome.carbon_g)
MARGINAL = ComparedFigure("carbon_marginal_g", lambda outcome: outcome.carbon_marginal_g)
WAIT = ComparedFigure("wait_mean_s", lambda outcome: outcome.wait_mean_s)
SLOWDOWN = ComparedFigure("slowdown_mean", lambda outcome: outcome.slowdown_mean)
LATE = ComparedFigure(
    "requests_late", lambda outcome: float(round(outcome.requests - outcome.requests_in_time))
)
MISSED = ComparedFigure(
    "deadlines_missed", lambda outcome: outcome.deadlines - outcome.deadlines_met
)


def compare(
    scenario: Scenario,
    policies: Sequence[Policy],
    seeds: Sequence[int],
    told: ProgressCallback,
    *,
    with_bound: bool = False,
) -> Iterator[Round]:
    """Yield the policies' runs on the scenario's world, seed by seed; tell of each run's end.

    With `with_bound` also the least totals that there can be. Raises BadInput as billing does, with
    the seed, and before the first run where the jobs of any seed cannot be run.
    """
    if len(seeds) > 1:
        refuse_seeds(scenario, seeds)
    for seed in seeds:
        with naming_seed(seed):
            done = _round(scenario, seed, policies, told, with_bound=with_bound)
        yield done


def _round(
    scenario: Scenario,
    seed: int,
    policies: Sequence[Policy],
    told: ProgressCallback,
    *,
    with_bound: bool,
) -> Round:
    world = build_world(scenario, seed)
    schedules = simulate_each(world, policies, told)
    until_s = billed_until_s(world, *schedules)
    outcomes = tuple(
        outcome_of(world, schedule, bill_of(world, schedule, until_s), until_s)
        for schedule in schedules
    )
    least = least_totals(world, schedules, until_s) if with_bound else None
    return Round(world, tuple(policies), tuple(schedules), outcomes, least)


def difference(figure: ComparedFigure, results: Results, policy: Policy) -> Difference:
    """Return a figure's change against the baseline's, seed by seed; raise BadInput without one."""
    if results.baseline is None:
        raise BadInput("nothing is compared: name a baseline")
    mine, theirs = (
        np.array([figure.of(outcome) for outcome in results.outcomes[each]], dtype=np.float64)
        for each in (policy, results.baseline)
    )
    with np.errstate(all="ignore"):
        percent = np.where(theirs == 0.0, np.nan, 100.0 * (mine - theirs) / np.abs(theirs))
    return Difference(interval(mine - theirs), interval(percent))


def captured(figure: ComparedFigure, results: Results, policy: Policy) -> ConfidenceInterval:
    """Return the share in % of what could be saved at all that a policy saves, seed by seed.

    100 is the bound, 0 the baseline. NaN where nothing could be saved. The figure is
    energy, cost or carbon; the results have bounds and a baseline.
    """
    assert results.baseline is not None, "nothing is compared"
    mine, theirs = (
        np.array([figure.of(outcome) for outcome in results.outcomes[each]], dtype=np.float64)
        for each in (policy, results.baseline)
    )
    least = np.array([getattr(each, figure.name) for each in results.least])
    return interval(captured_pct(theirs, mine, least))


def captured_pct(baseline: Floats | float, total: Floats | float, least: Floats | float) -> Floats:
    """Return how far totals are on the way from the baseline's to the least, in %.

    NaN where nothing could be saved.
    """
    possible = np.subtract(baseline, least)
    with np.errstate(all="ignore"):
        share = 100.0 * np.subtract(baseline, total) / possible
    return np.where(possible > WORTH_TELLING * np.abs(baseline), share, np.nan)


def interval(values: Floats) -> ConfidenceInterval:
    """Return the mean of one value a seed with Student's interval.

    It shows how much results vary with the seed, not how other clusters or grids would do.
    """
    mean = float(values.mean())
    if values.size < 2:
        return ConfidenceInterval(mean, np.nan, np.nan)
    half = stdtrit(values.size - 1, 0.5 + CONFIDENCE / 2) * values.std(ddof=1)
    half = float(half / np.sqrt(values.size))
    return ConfidenceInterval(mean, mean - half, mean + half)


def ranked(results: Results) -> Results:
    """Return the same, with the policies in the order in which tables and plots show them.

    The baseline comes first, then the others by carbon, the least first; who left jobs undone comes
    behind all who did not.
    """

    def rank(policy: Policy) -> tuple[bool, bool, float]:
        outcome = mean_outcome(results.outcomes[policy])
        return policy != results.baseline, outcome.jobs_done < outcome.jobs, outcome.carbon_g

    return results._replace(policies=tuple(sorted(results.policies, key=rank)))


def mean_outcome(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the mean of each figure over seeds; counts need be no whole numbers then."""
    figures = np.array([[*vars(each).values()] for each in outcomes], dtype=np.float64)
    return Outcome(*figures.mean(axis=0).tolist())
