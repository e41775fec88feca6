"""Measures how much a second core adds, since two hardware threads share arithmetic units."""

import time
from statistics import median
from threading import Thread

import numpy as np
from numba import njit

_TIMES = 50_000_000


def second_core_ratio(turns: int) -> float:
    """Return the arithmetic of two threads by that of one: 2 if two cores are free.

    A virtual machine's cores may be two hardware threads of one core, or in use by others.
    """
    _computing_s(1, times=1)  # compile first
    alone_s, both_s = zip(*((_computing_s(1), _computing_s(2)) for _ in range(turns)), strict=True)
    return float(2.0 * median(alone_s) / median(both_s))


def _computing_s(threads: int, times: int = _TIMES) -> float:
    each = [Thread(target=_compute, args=(times,)) for _ in range(threads)]
    began = time.perf_counter()
    for thread in each:
        thread.start()
    for thread in each:
        thread.join()
    return time.perf_counter() - began


@njit(nogil=True)
def _compute(times: int) -> int:
    """Do independent sums, which keep all of a core's arithmetic units busy."""
    a = b = c = d = e = f = g = h = np.int64(1)
    for number in range(times):
        a, d = a * 3 + number, d * 5 + number
        b, e = b ^ (a >> 3), e ^ (d >> 2)
        c, f = c + b, f + e
        g = (g << 1) ^ f
        h = h + g
    return int(a + b + c + d + e + f + g + h)
