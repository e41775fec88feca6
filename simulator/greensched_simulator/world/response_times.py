"""Response times of requests that several places answer, by queueing theory; arrays broadcast.

Requests arrive at random (Poisson) and wait in one queue for the first free place: M/G/c. The
probability of waiting is Erlang's C. The wait is exponential; its mean is that of M/M/c times
(1 + the squared coefficient of variation) / 2 (Allen, Probability, Statistics, and Queueing Theory,
2nd ed. 1990, the Allen-Cunneen approximation). This is exact if service times are exponential.
"""

from typing import NamedTuple

import numpy as np
from scipy import special

from greensched_policies.costs.cost import Floats

_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(64)
# On [0, 1], denser near 1, where quantiles grow fast.
_POINTS, _WEIGHTS = 1 - ((1 - _POINTS) / 2) ** 3, _WEIGHTS * 1.5 * ((1 - _POINTS) / 2) ** 2
_SPEEDS_APART = 3  # decimals
_LEAST_VARIATION = 0.0025  # squared; a gamma distribution cannot have 0


class Times(NamedTuple):
    """Service and answer time of a request at speed 1, both gamma distributed."""

    mean_s: float  # during which it occupies its place
    variation: float  # of that: variance / mean²
    answer_mean_s: float  # from the end of its wait to the answer that the objective names
    answer_variation: float


def erlang_c(places: Floats, load: Floats) -> Floats:
    """Return the probability that a request waits, by places and load (rate · mean time).

    1 if the queue grows. Erlang's B is the Poisson probability of `places` divided by that of at
    most `places`; C follows from it.
    """
    places, load = np.broadcast_arrays(places, load)
    safe = np.maximum(load, 1e-300)
    one = np.exp(places * np.log(safe) - safe - special.gammaln(places + 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        blocked = one / special.gammaincc(places + 1, safe)
        busy = safe / places
        waits = blocked / (1 - busy * (1 - blocked))
    return np.where(load <= 0, 0.0, np.where(safe < places, waits, 1.0))


def late_request_share(
    within_s: float, rate_per_s: Floats, places: Floats, speed: Floats | float, times: Times
) -> Floats:
    """Return the share of requests whose answer takes longer than `within_s`; see `late_shares`."""
    late: Floats = late_shares(np.array([within_s]), rate_per_s, places, speed, times)[0]
    return late


def late_shares(
    limits_s: Floats, rate_per_s: Floats, places: Floats, speed: Floats | float, times: Times
) -> Floats:
    """Return the share of requests whose wait and answer take longer than each limit, [T, …].

    `speed` is that of the places, relative to `times`. The share is 1 if the rate exceeds the
    capacity.
    """
    rate_per_s, places, speed = np.broadcast_arrays(rate_per_s, places, speed)
    found, which = np.unique(np.round(speed, _SPEEDS_APART), return_inverse=True)
    which = which.reshape(-1)
    shape = 1 / max(times.answer_variation, _LEAST_VARIATION)
    # In units of the answer's scale, so that only the limit differs by speed.
    scale_s = times.answer_mean_s / shape / np.maximum(found, 1e-9)
    load = rate_per_s * times.mean_s / np.maximum(speed, 1e-9)
    with np.errstate(divide="ignore", invalid="ignore"):
        ends_per_s = (places - load) * speed / times.mean_s * 2 / (1 + times.variation)
    keeps_up = load < places
    ends_per_s = np.where(keeps_up, ends_per_s, 0.0).reshape(-1, 1)
    waits = erlang_c(places, load)
    late = np.empty((limits_s.size, *speed.shape))
    for row, limit_s in zip(late, limits_s.tolist(), strict=True):
        in_time = special.gammainc(shape, limit_s / scale_s)[:, None]
        answered_s = special.gammaincinv(shape, in_time * _POINTS) * scale_s[:, None]
        too_long = np.exp(-ends_per_s * (limit_s - answered_s[which]))
        waited_too_long = ((in_time * _WEIGHTS)[which] * too_long).sum(axis=1)
        row[...] = (1 - in_time[which, 0] + waits.reshape(-1) * waited_too_long).reshape(row.shape)
    return np.where(keeps_up, np.clip(late, 0.0, 1.0), 1.0)


def least_places(
    within_s: float, late: float, rate_per_s: Floats, per_step: int, most: int, times: Times
) -> Floats:
    """Return the least steps of `per_step` places with which at most the share `late` is late.

    Places have speed 1. Returns `most` if even these are too few, and 0 without requests.
    """
    low = np.zeros(rate_per_s.size)  # too few, unless no requests come
    high = np.full(rate_per_s.size, float(most))
    while (high - low > 1).any():
        middle = np.where(high - low > 1, np.floor((low + high) / 2), high)
        enough = late_request_share(within_s, rate_per_s, middle * per_step, 1.0, times) <= late
        high = np.where(enough, middle, high)
        low = np.where(enough, low, np.minimum(middle, high - 1))
    return np.where(rate_per_s > 0, high, 0.0)
