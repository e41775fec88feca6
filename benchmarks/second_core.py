"""What a second core adds: two hardware threads of one core share what reckons."""

import time
from statistics import median
from threading import Thread

import numpy as np
from numba import njit

_TIMES, _TURNS = 50_000_000, 7


def second_core_ratio() -> float:
    """Return how much more arithmetic two threads do now than one: 2 where two cores are free.

    A virtual machine's cores may be two hardware threads of one core, or others may use theirs.
    """
    _reckoned_s(1, times=1)  # compiled by now
    alone_s, both_s = zip(*((_reckoned_s(1), _reckoned_s(2)) for _ in range(_TURNS)), strict=True)
    return float(2.0 * median(alone_s) / median(both_s))


def _reckoned_s(threads: int, times: int = _TIMES) -> float:
    each = [Thread(target=_reckon, args=(times,)) for _ in range(threads)]
    began = time.perf_counter()
    for thread in each:
        thread.start()
    for thread in each:
        thread.join()
    return time.perf_counter() - began


@njit(nogil=True)
def _reckon(times: int) -> int:
    """Do sums of which many can be done at once: that keeps a core's arithmetic units busy."""
    a = b = c = d = e = f = g = h = np.int64(1)
    for number in range(times):
        a, d = a * 3 + number, d * 5 + number
        b, e = b ^ (a >> 3), e ^ (d >> 2)
        c, f = c + b, f + e
        g = (g << 1) ^ f
        h = h + g
    return int(a + b + c + d + e + f + g + h)
