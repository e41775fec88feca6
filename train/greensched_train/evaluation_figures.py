"""What an evaluation shows: which rules are strongest, and how a policy compares with them.

All differences are paired: the same scenario with the same seed. A rule is eligible if it keeps
deadlines, by the same measure that a learned policy must meet.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from greensched_core.errors import BadInput
from greensched_simulator.policy import BASELINE
from greensched_simulator.results.cells import ConfidenceInterval
from greensched_simulator.results.comparison import confidence_interval
from greensched_train.evaluation import PolicyOutcome, WorldOutcome
from greensched_train.scored_worlds import FULL_LOAD

MOST_MISSED_PCT = 0.5  # of deadlines in a scenario up to FULL_LOAD
MOST_EXCESS_POINTS = 0.3  # above it, beyond what run-now+spread misses there
KUBERNETES = "run-now+kubernetes-default+full-speed"

OutcomeFigure = Callable[[PolicyOutcome], float]


class DeadlinesKept(NamedTuple):
    """How a policy keeps deadlines, in its worst scenario: means over the seeds."""

    missed_pct: float  # up to FULL_LOAD
    excess_points: float  # above it, beyond run-now+spread

    @property
    def is_eligible(self) -> bool:
        """Return whether that is good enough."""
        return self.missed_pct <= MOST_MISSED_PCT and self.excess_points <= MOST_EXCESS_POINTS


class PairedChange(NamedTuple):
    """A policy in each scenario against another, in per cent of J: means over the seeds."""

    policy: str
    other: str
    whole: ConfidenceInterval  # over all worlds
    by_scenario: dict[str, ConfidenceInterval]


def scenarios_of(worlds: Sequence[WorldOutcome]) -> dict[str, list[WorldOutcome]]:
    """Return the worlds of each scenario."""
    found = dict[str, list[WorldOutcome]]()
    for world in worlds:
        found.setdefault(world.scenario, []).append(world)
    return found


def kept_by(policy: str, worlds: Sequence[WorldOutcome]) -> DeadlinesKept:
    """Return how a policy keeps deadlines."""
    missed, excess = [0.0], [0.0]
    for own in scenarios_of(worlds).values():
        late = np.array([100.0 * world.policies[policy].missed for world in own])
        usual = np.array([100.0 * world.policies[BASELINE].missed for world in own])
        if own[0].load <= FULL_LOAD:
            missed.append(float(late.mean()))
        else:
            excess.append(float((late - usual).mean()))
    return DeadlinesKept(max(missed), max(excess))


def changes_pct(
    policy: str, other: str, worlds: Sequence[WorldOutcome], of: OutcomeFigure
) -> list[float]:
    """Return by how much a policy changes a figure against another in each world, in per cent."""
    found = []
    for world in worlds:
        ours, theirs = of(world.policies[policy]), of(world.policies[other])
        found.append(100.0 * (ours - theirs) / abs(theirs))
    return found


def change_of(
    policy: str, other: str, worlds: Sequence[WorldOutcome], of: OutcomeFigure
) -> ConfidenceInterval:
    """Return the mean of these changes, and its interval."""
    return confidence_interval(np.array(changes_pct(policy, other, worlds, of)))


def objective(outcome: PolicyOutcome) -> float:
    """Return J, relative to run-now+spread."""
    return outcome.cost_ratio


def paired_change(policy: str, other: str, worlds: Sequence[WorldOutcome]) -> PairedChange:
    """Return a policy's J against another's."""

    def interval(own: Sequence[WorldOutcome]) -> ConfidenceInterval:
        return change_of(policy, other, own, objective)

    by_scenario = {name: interval(own) for name, own in scenarios_of(worlds).items()}
    return PairedChange(policy, other, interval(worlds), by_scenario)


def best_single(rules: Sequence[str], worlds: Sequence[WorldOutcome]) -> str:
    """Return the eligible rules that are cheapest over all worlds, in hindsight.

    Raises BadInput if none is eligible.
    """
    eligible = [rule for rule in rules if kept_by(rule, worlds).is_eligible]
    if not eligible:
        raise BadInput(
            "no combination of rules keeps deadlines in these scenarios: give scenarios in which "
            "run-now does"
        )
    return min(eligible, key=lambda rule: mean_objective(rule, worlds))


def mean_objective(policy: str, worlds: Sequence[WorldOutcome]) -> float:
    """Return a policy's mean J over worlds, relative to run-now+spread."""
    return float(np.mean([world.policies[policy].cost_ratio for world in worlds]))


def best_each(rules: Sequence[str], worlds: Sequence[WorldOutcome]) -> dict[str, str]:
    """Return the cheapest of the rules that are eligible in it, in hindsight, for each scenario."""
    return {name: best_single(rules, own) for name, own in scenarios_of(worlds).items()}
