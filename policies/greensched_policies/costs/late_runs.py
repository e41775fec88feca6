"""How likely a run ends late, and what that chance costs.

The ratio of a run's true to its expected runtime is taken as log-normal, with median 1. That is an
assumption, the one by which the simulator draws errors of estimates (`workload.estimate_error`).
"""

import math

_SHARE_FOR_THE_TARGET = 0.01
_NEVER_LATE_SIGMAS = 5.0  # one run in three million takes longer


def late_share(left_s: float, runtime_s: float, runtime_error: float) -> float:
    """Return the share of runs of an expected runtime, in seconds, that take longer than `left_s`.

    It is the chance that a run is late which has so much time until its deadline. `runtime_error`
    is the standard deviation of the ratio's logarithm.
    """
    if left_s <= 0.0:
        return 1.0
    excess = math.log(left_s / runtime_s)
    if runtime_error <= 0.0:
        return 1.0 if excess < 0.0 else 0.0
    return 0.5 * math.erfc(excess / (runtime_error * math.sqrt(2.0)))


def never_late_ratio(runtime_error: float) -> float:
    """Return the ratio of true to expected runtime above which so few runs are that none counts."""
    return math.exp(_NEVER_LATE_SIGMAS * runtime_error)


def price_of_lateness(on_time_target: float) -> float:
    """Return what a late run costs, as a multiple of what it costs at once.

    A chance to be late as high as the target allows costs a hundredth of the run: at 99.5 %, two
    runs; decision 26 has why.
    """
    return _SHARE_FOR_THE_TARGET / (1.0 - on_time_target)
