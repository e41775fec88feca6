"""The reward of decisions: money, carbon and lateness, relative to starting all jobs at once.

    r = −(w_cost · cost + w_carbon · carbon + w_perf · penalty)

Money and carbon are divided by those of the same world if all jobs start at once. The penalty is
divided by the number of jobs with a deadline, since hardly any job is late if it starts at once.
If all weights are 1, starting all jobs at once costs 1 + 1, and the penalty adds 1 if all jobs with
a deadline are late by a moment.
"""

from typing import NamedTuple

import numpy as np

from greensched_core.units import SECONDS_PER_HOUR
from greensched_policies.costs.cost import Floats
from greensched_policies.encoding.observation import LEAST_MAGNITUDE
from greensched_policies.encoding.weights import Weights

MISSED = 1.0  # penalty of a job that ends after its deadline
PER_HOUR_LATE = 1.0
ROUNDING_S = 1e-6  # (deadline − runtime) + runtime may differ from the deadline in the last digit


class Shares(NamedTuple):
    """The factor of the reward for a unit of each: the weight divided by its scale."""

    of_cost: float  # a unit of the currency
    of_carbon_g: float
    of_penalty: float


def shares_of(weights: Weights, cost: float, carbon_g: float, deadlines: int) -> Shares:
    """Return the factors for a baseline of this cost and carbon, and a number of deadlines.

    A part that the baseline has none of, such as money without prices, is left out. Negative
    amounts count as their magnitude.
    """
    return Shares(
        _share(weights.cost, cost),
        _share(weights.carbon, carbon_g),
        _share(weights.performance, float(deadlines)),
    )


def penalty_of(end_s: Floats, deadline_s: Floats) -> Floats:
    """Return the penalty of jobs by their end: 1 for a missed deadline, plus 1 per hour late."""
    late_s = np.maximum(end_s - deadline_s, 0.0)
    return (late_s > ROUNDING_S) * (MISSED + PER_HOUR_LATE * late_s / SECONDS_PER_HOUR)


def reward_of(cost: float, carbon_g: float, penalty: float, shares: Shares) -> float:
    """Return the reward of these amounts; the rewards of a run's parts add up to the run's."""
    worth = shares.of_cost * cost + shares.of_carbon_g * carbon_g
    return -(worth + shares.of_penalty * penalty)


def _share(weight: float, scale: float) -> float:
    return weight / abs(scale) if abs(scale) > LEAST_MAGNITUDE else 0.0
