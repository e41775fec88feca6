"""Compares policies on the same worlds: their figures, and differences paired by seed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit  # Student's quantiles; scipy.stats takes a second to import

from greensched_core.errors import BadInput
from greensched_policies.costs.cost import Floats
from greensched_simulator.arrays.seeds import naming_seed
from greensched_simulator.bounds.bound import Least, least_totals
from greensched_simulator.policy import Policy
from greensched_simulator.results.cells import ConfidenceInterval
from greensched_simulator.runs.billing_together import outcomes_together
from greensched_simulator.runs.outcome import Outcome
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import ProgressCallback, simulate_each
from greensched_simulator.scenario.model import Scenario
from greensched_simulator.world.world import World, build_world, refuse_seeds

CONFIDENCE = 0.95
LEAST_SAVING_SHARE = 1e-6  # of the baseline; a smaller possible saving is within the solver's error


class Round(NamedTuple):
    """All policies' runs on one world, billed for the same time, but for those without a bill."""

    world: World
    policies: tuple[Policy, ...]
    schedules: tuple[Schedule, ...]  # one per policy
    outcomes: tuple[Outcome, ...]
    least: Least | None = None  # lower bounds for all billed schedules; None: not requested
    engine_s: tuple[float, ...] = ()  # wall seconds of each run; empty: not measured

    @property
    def billed_s(self) -> float:
        """Return the seconds for which the policies are billed."""
        return next(outcome.billed_s for outcome in self.outcomes if outcome.is_billed)


class Results(NamedTuple):
    """The outcomes of all runs."""

    policies: tuple[Policy, ...]
    baseline: Policy | None  # one of the policies; None: no comparison
    seeds: tuple[int, ...]
    outcomes: Mapping[Policy, tuple[Outcome, ...]]  # one per seed, in their order
    least: tuple[Least, ...] = ()  # one per seed, or none
    # Wall seconds of the engine per decision, mean over all; not reproducible; empty: not measured.
    decision_s: Mapping[Policy, float] = MappingProxyType({})

    @property
    def billed_s(self) -> tuple[float, ...]:
        """Return the seconds for which the policies are billed with each seed."""
        return tuple(
            next(outcome.billed_s for outcome in each if outcome.is_billed)
            for each in zip(*self.outcomes.values(), strict=True)
        )


class ComparedFigure(NamedTuple):
    """One figure of an outcome that comparisons show; less is better."""

    name: str
    of: Callable[[Outcome], float]


class Difference(NamedTuple):
    """One policy's change of a figure against the baseline, paired by seed."""

    change: ConfidenceInterval  # in the figure's unit
    percent: ConfidenceInterval  # of each seed's baseline; NaN if that is 0


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
NEVER_RAN = ComparedFigure("jobs_never_ran", lambda outcome: outcome.jobs_never_ran)
# What a run did; more is better. Requests are expected values, whose rounding is no difference.
_DONE: tuple[Callable[[Outcome], float], ...] = (
    lambda outcome: outcome.jobs_done,
    lambda outcome: outcome.work_core_h,
    lambda outcome: outcome.work_gpu_h,
    lambda outcome: outcome.work_memory_gib_h,
    lambda outcome: round(outcome.requests - outcome.requests_turned_away),
)


def compare(
    scenario: Scenario,
    policies: Sequence[Policy],
    seeds: Sequence[int],
    on_end: ProgressCallback,
    *,
    with_bound: bool = False,
) -> Iterator[Round]:
    """Yield the policies' runs on the scenario's world, seed by seed; call `on_end` after each run.

    `with_bound` adds the lower bounds. A policy that lasts longer than the data of the grids has no
    bill. Raises BadInput, with the seed, if that holds for all; if the jobs of any seed cannot be
    run, before the first run.
    """
    if len(seeds) > 1:
        refuse_seeds(scenario, seeds)
    for seed in seeds:
        with naming_seed(seed):
            done = _round(scenario, seed, policies, on_end, with_bound=with_bound)
        yield done


def _round(
    scenario: Scenario,
    seed: int,
    policies: Sequence[Policy],
    on_end: ProgressCallback,
    *,
    with_bound: bool,
) -> Round:
    world = build_world(scenario, seed)
    runs = simulate_each(world, policies, on_end)
    schedules, engine_s = (
        tuple(each.schedule for each in runs),
        tuple(each.engine_s for each in runs),
    )
    outcomes = outcomes_together(world, schedules)
    done = Round(world, tuple(policies), schedules, outcomes, engine_s=engine_s)
    if not with_bound:
        return done
    pairs = zip(schedules, outcomes, strict=True)
    billed = [schedule for schedule, outcome in pairs if outcome.is_billed]
    return done._replace(least=least_totals(world, billed, done.billed_s))


def difference(figure: ComparedFigure, results: Results, policy: Policy) -> Difference:
    """Return a figure's change against the baseline's, seed by seed; raise BadInput without one."""
    if results.baseline is None:
        raise BadInput("there is no baseline to compare with: name one")
    own, base = (
        np.array([figure.of(outcome) for outcome in results.outcomes[each]], dtype=np.float64)
        for each in (policy, results.baseline)
    )
    with np.errstate(all="ignore"):
        percent = np.where(base == 0.0, np.nan, 100.0 * (own - base) / np.abs(base))
    return Difference(confidence_interval(own - base), confidence_interval(percent))


def does_less(results: Results, policy: Policy) -> bool:
    """Return whether a policy did less work of any kind than the baseline, with any seed.

    Jobs, hours of cores, GPUs and memory, and answered requests each count by themselves: what a
    policy saves by leaving some of them undone is no saving. False without a baseline.
    """
    if results.baseline is None:
        return False
    pairs = zip(results.outcomes[policy], results.outcomes[results.baseline], strict=True)
    return any(done(ours) < done(theirs) for ours, theirs in pairs for done in _DONE)


def captured(figure: ComparedFigure, results: Results, policy: Policy) -> ConfidenceInterval:
    """Return the share in % of the largest possible saving that a policy saves, by seed.

    100 is the bound, 0 the baseline; NaN if nothing could be saved. The figure is energy, cost or
    carbon; the results have bounds and a baseline.
    """
    assert results.baseline is not None, "there is no baseline"
    own, base = (
        np.array([figure.of(outcome) for outcome in results.outcomes[each]], dtype=np.float64)
        for each in (policy, results.baseline)
    )
    least = np.array([getattr(each, figure.name) for each in results.least])
    return confidence_interval(captured_pct(base, own, least))


def captured_pct(baseline: Floats | float, total: Floats | float, least: Floats | float) -> Floats:
    """Return how much of the way from the baseline to the bound totals are, in %.

    NaN if nothing could be saved.
    """
    possible = np.subtract(baseline, least)
    with np.errstate(all="ignore"):
        share = 100.0 * np.subtract(baseline, total) / possible
    return np.where(possible > LEAST_SAVING_SHARE * np.abs(baseline), share, np.nan)


def confidence_interval(values: Floats) -> ConfidenceInterval:
    """Return the mean of one value per seed with Student's interval.

    It shows how much results vary with the seed, not with other clusters or grids.
    """
    mean = float(values.mean())
    if values.size < 2:
        return ConfidenceInterval(mean, np.nan, np.nan)
    half = stdtrit(values.size - 1, 0.5 + CONFIDENCE / 2) * values.std(ddof=1)
    half = float(half / np.sqrt(values.size))
    return ConfidenceInterval(mean, mean - half, mean + half)


def ranked(results: Results) -> Results:
    """Return the results with the policies in the order of tables and plots.

    The baseline comes first, then the others by carbon, the least first; policies that left work
    undone come after those, and last the policies without a bill.
    """

    def rank(policy: Policy) -> tuple[bool, bool, bool, float]:
        outcome = mean_outcome(results.outcomes[policy])
        is_other = policy != results.baseline
        is_undone = outcome.jobs_done < outcome.jobs or does_less(results, policy)
        return is_other, not outcome.is_billed, is_undone, outcome.carbon_g

    return results._replace(policies=tuple(sorted(results.policies, key=rank)))


def mean_outcome(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the mean of each figure over seeds; counts then need not be whole."""
    figures = np.array([[*vars(each).values()] for each in outcomes], dtype=np.float64)
    return Outcome(*figures.mean(axis=0).tolist())
