"""What a run costs at each candidate start: money and carbon with its energy, and time."""

import numpy as np

from greensched_policies.compiling.compiled import borrowing, inlined
from greensched_policies.costs.cost import Floats
from greensched_policies.encoding.weights import Weights

_LEAST_MAGNITUDE = 1e-30


@borrowing
def weigh(
    carbon: Floats,
    price: Floats,
    energy: Floats,
    merit: Floats,
    weights: Weights,
    weighted: Floats,
) -> None:
    """Fill in the weighted sum of carbon and price over the run, [Z,S].

    Both are first multiplied by the energy of the run, and divided by their mean magnitudes. The
    energy is that in each zone, [Z], or [0] where it is not known, times `merit`, [Z,S].
    """
    of_carbon, of_price, mean_j = 0.0, 0.0, mean_of_finite(energy)
    for zone in range(weighted.shape[0]):
        share = _relative(energy, zone, mean_j) / weighted.shape[0]
        of_carbon += share * _mean_magnitude(carbon[zone], merit[zone])
        of_price += share * _mean_magnitude(price[zone], merit[zone])
    for zone in range(weighted.shape[0]):
        relative = _relative(energy, zone, mean_j)
        by_carbon = weights.carbon * relative / max(of_carbon, _LEAST_MAGNITUDE)
        by_price = weights.cost * relative / max(of_price, _LEAST_MAGNITUDE)
        for place in range(weighted.shape[1]):
            each = by_carbon * carbon[zone, place] + by_price * price[zone, place]
            weighted[zone, place] = merit[zone, place] * each


@inlined
def cost_per_s(performance: float, mean_s: float, slot_s: float, count: int) -> float:
    """Return what each second until the end of a run of mean length `mean_s` costs, weighted.

    It is relative to the mean time until the end, over `count` starts. So waiting costs, and so
    does a zone of slow nodes. It is 0 if no zone can take the run.
    """
    if mean_s == 0.0:
        return 0.0
    return float(performance / (mean_s + 0.5 * (count - 1) * slot_s))


@inlined
def mean_of_finite(values: Floats) -> float:
    """Return the mean of the zones that can take a run, whose values are finite; 0 if none can."""
    known, total = 0, 0.0
    for each in values:
        if np.isfinite(each):
            known, total = known + 1, total + each
    return total / known if known > 0 else 0.0


@inlined
def _relative(energy: Floats, zone: int, mean_j: float) -> float:
    """Return the energy in a zone relative to the mean; 1 where it is not known, or not finite."""
    if mean_j == 0.0 or not np.isfinite(energy[zone]):
        return 1.0
    return float(energy[zone] / mean_j)


@inlined
def _mean_magnitude(values: Floats, factors: Floats) -> float:
    """Return the mean magnitude of products; eight sums let additions run in parallel."""
    sums = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    whole = values.size - values.size % 8
    for place in range(0, whole, 8):
        sums = (
            sums[0] + abs(values[place]) * factors[place],
            sums[1] + abs(values[place + 1]) * factors[place + 1],
            sums[2] + abs(values[place + 2]) * factors[place + 2],
            sums[3] + abs(values[place + 3]) * factors[place + 3],
            sums[4] + abs(values[place + 4]) * factors[place + 4],
            sums[5] + abs(values[place + 5]) * factors[place + 5],
            sums[6] + abs(values[place + 6]) * factors[place + 6],
            sums[7] + abs(values[place + 7]) * factors[place + 7],
        )
    rest = 0.0
    for place in range(whole, values.size):
        rest += abs(values[place]) * factors[place]
    one, two = sums[0] + sums[1] + sums[2] + sums[3], sums[4] + sums[5] + sums[6] + sums[7]
    return (one + two + rest) / values.size
