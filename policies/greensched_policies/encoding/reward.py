"""What decisions are rewarded for: money, carbon and lateness, relative to running all at once.

    r = −(w_energy · cost + w_carbon · carbon + w_perf · penalty)

Money and carbon are divided by what they come to where all jobs start at once, in the same world;
the penalty by the number of jobs that have a deadline, since started at once hardly any is late.
So a run of 1 + 1 costs as much as starting at once, and one in which all jobs are late for a moment
is as bad again, if all weights are 1.
"""

from typing import NamedTuple

import numpy as np

from greensched_policies.costs.cost import Floats
from greensched_policies.encoding.observation import LEAST_MAGNITUDE, SECONDS_PER_HOUR
from greensched_policies.encoding.weights import Weights

MISSED = 1.0  # of a job that ends after its deadline
PER_HOUR_LATE = 1.0
ROUNDING_S = 1e-6  # (deadline − runtime) + runtime need not be the deadline to the last digit


class Shares(NamedTuple):
    """What a unit of each is worth: the weights, each divided by its scale."""

    of_cost: float  # a unit of the currency
    of_carbon_g: float
    of_penalty: float


def shares_of(weights: Weights, cost: float, carbon_g: float, deadlines: int) -> Shares:
    """Return what a unit is worth beside a baseline of such a cost and carbon.

    Of a baseline without any, such as where there is no price, that part is left out. Negative ones
    count as their magnitude.
    """
    return Shares(
        _share(weights.cost, cost),
        _share(weights.carbon, carbon_g),
        _share(weights.performance, float(deadlines)),
    )


def penalty_of(end_s: Floats, deadline_s: Floats) -> Floats:
    """Return the penalty of jobs that end then: 1 for a miss and 1 for each hour after it."""
    late_s = np.maximum(end_s - deadline_s, 0.0)
    return (late_s > ROUNDING_S) * (MISSED + PER_HOUR_LATE * late_s / SECONDS_PER_HOUR)


def reward_of(cost: float, carbon_g: float, penalty: float, shares: Shares) -> float:
    """Return the reward of what was taken; of parts of a run it adds up to that of the whole."""
    worth = shares.of_cost * cost + shares.of_carbon_g * carbon_g
    return -(worth + shares.of_penalty * penalty)


def _share(weight: float, scale: float) -> float:
    return weight / abs(scale) if abs(scale) > LEAST_MAGNITUDE else 0.0
