"""What a run costs at each candidate start: money and carbon with its energy, and time."""

import numpy as np

from greensched_policies.compiling.compiled import borrowing, inlined
from greensched_policies.costs.cost import Floats
from greensched_policies.encoding.weights import Weights

_LEAST_MAGNITUDE = 1e-30


@borrowing
def weigh(
    carbon: Floats, price: Floats, energy: Floats, weights: Weights, weighted: Floats
) -> None:
    """Fill in the weighted sum of carbon and price over the run, [Z,S].

    Both are first multiplied by the energy of the run in each zone, [Z], or [0] where that is not
    known, and divided by their mean magnitudes.
    """
    of_carbon, of_price = 0.0, 0.0
    for zone in range(weighted.shape[0]):
        share = _relative_energy(energy, zone) / weighted.shape[0]
        of_carbon += share * _mean_magnitude(carbon[zone])
        of_price += share * _mean_magnitude(price[zone])
    for zone in range(weighted.shape[0]):
        relative = _relative_energy(energy, zone)
        by_carbon = weights.carbon * relative / max(of_carbon, _LEAST_MAGNITUDE)
        by_price = weights.cost * relative / max(of_price, _LEAST_MAGNITUDE)
        for place in range(weighted.shape[1]):
            weighted[zone, place] = by_carbon * carbon[zone, place] + by_price * price[zone, place]


@inlined
def _relative_energy(energy: Floats, zone: int) -> float:
    """Return the energy in a zone, relative to the mean; 1 where it is not known or not finite."""
    known, total = 0, 0.0
    for each in energy:
        if np.isfinite(each):
            known, total = known + 1, total + each
    if total == 0.0 or not np.isfinite(energy[zone]):
        return 1.0
    return float(energy[zone] * known / total)


@inlined
def cost_per_s(performance: float, runtime_s: Floats, slot_s: float, count: int) -> float:
    """Return what each second until the end of a run costs, weighted.

    It is relative to the mean time until the end, over `count` starts in the zones that can take
    the run. So waiting costs, and so does a zone of slow nodes.
    """
    able, total_s = 0, 0.0
    for each_s in runtime_s:
        if not np.isinf(each_s):
            able, total_s = able + 1, total_s + each_s
    if able == 0:
        return 0.0
    return float(performance / (total_s / able + 0.5 * (count - 1) * slot_s))


@inlined
def _mean_magnitude(values: Floats) -> float:
    """Return the mean magnitude; four independent sums let additions run in parallel."""
    one, two, three, four = 0.0, 0.0, 0.0, 0.0
    whole = values.size - values.size % 4
    for place in range(0, whole, 4):
        one += abs(values[place])
        two += abs(values[place + 1])
        three += abs(values[place + 2])
        four += abs(values[place + 3])
    for place in range(whole, values.size):
        one += abs(values[place])
    return (one + two + three + four) / values.size
