"""A heap of jobs by time, the earliest first, in an array.

Unlike a numba list, the array outlives a call. Its layout is that of the standard library's
`heapq`.
"""

import numpy as np

from greensched_policies.compiling.compiled import borrowing, fast, inlined
from greensched_policies.costs.cost import Floats

Heap = Floats  # [J+1,2] the number of entries in the first row; then each entry's time (s) and job


@fast
def empty_heap(most: int) -> Heap:
    """Return an empty heap with room for `most` entries."""
    heap = np.empty((most + 1, 2))
    heap[0] = 0.0
    return heap


@inlined
def size_of(heap: Heap) -> int:
    """Return the number of entries."""
    return int(heap[0, 0])


@inlined
def earliest_s(heap: Heap) -> float:
    """Return the time of the earliest entry; infinity if the heap is empty."""
    return heap[1, 0] if heap[0, 0] > 0.0 else np.inf


@inlined
def job_at(heap: Heap, place: int) -> int:
    """Return the job of the entry at `place`, counted from 0."""
    return int(heap[place + 1, 1])


@borrowing
def push(heap: Heap, time_s: float, job: int) -> None:
    """Add a job with its time; of equal times the lower job comes first."""
    heap[0, 0] += 1.0
    _sift_down(heap, 1, size_of(heap), time_s, float(job))


@borrowing
def pop(heap: Heap) -> tuple[float, int]:
    """Remove and return the earliest entry; the heap must not be empty."""
    last = size_of(heap)
    time_s, job = heap[last, 0], heap[last, 1]
    heap[0, 0] -= 1.0
    if last == 1:
        return time_s, int(job)
    first_s, first = heap[1, 0], heap[1, 1]
    heap[1, 0], heap[1, 1] = time_s, job
    _sift_up(heap, 1)
    return first_s, int(first)


@borrowing
def restore(heap: Heap) -> None:
    """Restore the heap order after times were changed in place."""
    for place in range(size_of(heap) // 2, 0, -1):
        _sift_up(heap, place)


@inlined
def _comes_before(time_s: float, job: float, other_s: float, other: float) -> bool:
    return time_s < other_s or (time_s == other_s and job < other)


@borrowing
def _sift_down(heap: Heap, first: int, place: int, time_s: float, job: float) -> None:
    """Insert an entry at `place` or above it, but not above `first`."""
    while place > first:
        above = place >> 1
        if not _comes_before(time_s, job, heap[above, 0], heap[above, 1]):
            break
        heap[place, 0], heap[place, 1] = heap[above, 0], heap[above, 1]
        place = above
    heap[place, 0], heap[place, 1] = time_s, job


@borrowing
def _sift_up(heap: Heap, first: int) -> None:
    """Move the entry at `first` to the bottom, then up to its place; this compares less often."""
    count, place = size_of(heap), first
    time_s, job = heap[first, 0], heap[first, 1]
    below = 2 * place
    while below <= count:
        right = below + 1
        if right <= count and not _comes_before(
            heap[below, 0], heap[below, 1], heap[right, 0], heap[right, 1]
        ):
            below = right
        heap[place, 0], heap[place, 1] = heap[below, 0], heap[below, 1]
        place = below
        below = 2 * place
    _sift_down(heap, first, place, time_s, job)
