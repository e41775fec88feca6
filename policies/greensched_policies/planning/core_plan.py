"""The cores and GPUs that run or are planned in each zone and slot, and the load of a run.

For cores the same as `Plan`, `keep` and `watch_plan` of the simulator's `starts.py`; a test
compares both. Here the maxima over 1, 2, 4 … slots are kept up to date, as far as runs have needed
them: there is one query between two changes of the plan, and a change touches few slots.
"""

import math

import numpy as np

from greensched_policies.costs.cost import Floats, Integers

_LEAST_CORES = 1e-9  # a zone that lost its capacity counts as full, without dividing by zero


class CorePlan:
    """The cores, and GPUs if there are any, that run or are planned in each zone from `begin_s` on.

    A run that touches a slot counts in all of it. Runs beyond the last slot count in that one.
    """

    def __init__(
        self,
        capacity: Floats,
        begin_s: float,
        slot_s: float,
        slots: int,
        gpus: Floats | None = None,
    ) -> None:
        """`capacity` are the cores of each zone, [Z], and `gpus` its GPUs."""
        if slots < 1 or not slot_s > 0.0:
            raise ValueError("a plan needs at least one slot, and slots longer than 0 s")
        self.capacity = np.maximum(capacity, _LEAST_CORES)  # [Z] cores of the zone's nodes
        self.begin_s = begin_s
        self.slot_s = slot_s
        # [level,Z,slots]: the most cores within 2^level slots from each one, or up to the last.
        self._most = np.zeros((slots.bit_length(), capacity.size, slots))
        self._levels = 1  # the levels that are up to date
        self._gpus = None
        if gpus is not None and gpus.any():
            self._gpus = CorePlan(gpus, begin_s, slot_s, slots)

    @property
    def cores(self) -> Floats:
        """The cores taken, [Z,slots]; to be read only."""
        cores: Floats = self._most[0]
        return cores

    def keep(
        self, zone: int, begin_s: float, end_s: float, cpu_cores: float, gpus: float = 0.0
    ) -> None:
        """Add cores and GPUs from `begin_s` to `end_s`; negative ones remove them again.

        A run that ends before the plan begins changes nothing.
        """
        if end_s <= self.begin_s:
            return
        if gpus and self._gpus is not None:
            self._gpus.keep(zone, begin_s, end_s, gpus)
        first, last = self._slots_of(begin_s, end_s)
        self._most[0, zone, first:last] += cpu_cores
        for level in range(1, self._levels):
            self._update(level, zone, max(first - (1 << level) + 1, 0), last)

    def _update(self, level: int, zones: int | slice, first: int, last: int) -> None:
        """Update one level from the level below, for spans from `first` to `last`."""
        half = 1 << (level - 1)
        shorter, longer = self._most[level - 1, zones], self._most[level, zones]
        whole = max(min(last, longer.shape[-1] - half), first)  # then the second half is outside
        np.maximum(
            shorter[..., first:whole],
            shorter[..., first + half : whole + half],
            out=longer[..., first:whole],
        )
        if whole < last:
            longer[..., whole:last] = shorter[..., whole:last]

    def widths(self, now_s: float, runtime_s: Floats) -> Integers:
        """Return how many slots runs from `now_s` touch; 0 where the runtime is infinite."""
        slots = self.cores.shape[1]
        first = self._first(now_s)
        ends = np.ceil((now_s - self.begin_s + runtime_s) / self.slot_s)
        widths = np.maximum(np.minimum(ends, slots) - first, 1.0)
        return np.where(np.isfinite(runtime_s), widths, 0.0).astype(np.int64)

    def busiest(
        self, now_s: float, widths: list[int], count: int, cpu_cores: float, gpus: float = 0.0
    ) -> Floats:
        """Return the highest share of cores during a run from each of `count` starts, [Z,count].

        For a run with GPUs it is that of cores or GPUs, whichever is higher. The run's own are
        included. The share is 0 where the result of `widths` is 0.
        """
        first, slots = self._first(now_s), self.cores.shape[1]
        found = np.empty((len(widths), count))
        inside = min(count, slots - first)  # starts beyond the plan use its last slot
        if len(set(widths)) == 1 and widths[0]:
            self._most_over(slice(None), first, widths[0], found[:, :inside])
        else:
            for zone, width in enumerate(widths):
                if width:
                    self._most_over(zone, first, width, found[zone, :inside])
        if inside < count:
            found[:, inside:] = self.cores[:, -1:]
        found += cpu_cores
        found /= self.capacity[:, None]
        if gpus and self._gpus is not None:
            np.maximum(found, self._gpus.busiest(now_s, widths, count, gpus), out=found)
        if 0 in widths:
            found[[width == 0 for width in widths]] = 0.0
        return found

    def _most_over(self, zones: int | slice, first: int, width: int, into: Floats) -> None:
        """Fill in the most cores over `width` slots from each one, by two overlapping spans."""
        level = width.bit_length() - 1
        while self._levels <= level:
            self._update(self._levels, slice(None), 0, self.cores.shape[1])
            self._levels += 1
        most = self._most[level, zones]
        count, slots, later = into.shape[-1], most.shape[-1], first + width - (1 << level)
        both = min(count, slots - later)
        np.maximum(
            most[..., first : first + both], most[..., later : later + both], out=into[..., :both]
        )
        into[..., both:] = most[..., first + both : first + count]

    def _first(self, begin_s: float) -> int:
        place = int((begin_s - self.begin_s) // self.slot_s)
        return min(max(place, 0), int(self.cores.shape[1]) - 1)

    def _slots_of(self, begin_s: float, end_s: float) -> tuple[int, int]:
        """Return the first slot that an interval touches, and the one after its last."""
        first, slots = self._first(begin_s), self.cores.shape[1]
        last = math.ceil(min((end_s - self.begin_s) / self.slot_s, slots))
        return first, max(last, first + 1)
