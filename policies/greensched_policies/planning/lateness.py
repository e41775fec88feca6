"""How surely work ends before its deadline, by what is known of its runtime.

Runtimes are taken as log-normal about the expected one: see `costs/late_runs.py`.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist

_WORTH_OF_PRIOR = 4.0  # past runs that weigh as much as the error assumed without any
_NORMAL = NormalDist()
_MOST_SPARE_S = 7200.0


def longest_ratio(on_time_target: float, runtime_error: float) -> float:
    """Return the ratio of true to expected runtime that a share `on_time_target` of runs keeps to.

    `runtime_error` is the standard deviation of the ratio's logarithm.
    """
    return math.exp(_NORMAL.inv_cdf(on_time_target) * runtime_error)


def spare_s(longest_wait_s: float) -> float:
    """Return the last part of a wait, in seconds, that is kept for waiting for a node.

    It is a third, at most two hours; decision 21 has what others did.
    """
    return min(longest_wait_s / 3.0, _MOST_SPARE_S)


def median_runtime_s(runtimes_s: Sequence[float]) -> float:
    """Return the median of log-normal runtimes: their geometric mean, in seconds."""
    return math.exp(sum(map(math.log, runtimes_s)) / len(runtimes_s))


def error_of(runtimes_s: Sequence[float], assumed: float) -> float:
    """Return the standard deviation of the next run's logarithm about that of the median so far.

    The assumed one counts like a few more runs, so that two equal runs do not promise a third. With
    few runs the median itself is uncertain, which adds to it.
    """
    count = len(runtimes_s)
    if not count:
        return assumed
    middle = math.log(median_runtime_s(runtimes_s))
    apart = sum((math.log(each) - middle) ** 2 for each in runtimes_s)
    variance = (_WORTH_OF_PRIOR * assumed**2 + apart) / (_WORTH_OF_PRIOR + count - 1.0)
    return math.sqrt(variance * (1.0 + 1.0 / count))
