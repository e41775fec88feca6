"""What pods took from start to end, by the first meter that saw them, read from Prometheus.

The kubelet's word, an estimate, counts where no meter saw a run.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from greensched_core.power.meters.catalogue import POD_METERS
from greensched_core.power.meters.meter import LEAST_SEEN, PodMeter
from greensched_core.power.pod_courses import Piece, energy_j, scaled, share_seen
from greensched_core.power.pod_runs import PodRun
from greensched_core.power.prometheus import PrometheusApi

_MOST_POINTS = 240
_SHORTEST_STEP_S = 5.0
_AT_ONCE = 20  # pods in one question: it fits into an address


@dataclass(frozen=True, slots=True)
class MeasuredPods:
    """What pods took, by UID: pieces that make up their whole runs."""

    meter: str  # its name
    pieces: Mapping[str, Sequence[Piece]]


async def measured_pods(
    prometheus: PrometheusApi,
    runs: Sequence[PodRun],
    *,
    with_gpus: bool = False,
    meters: Sequence[PodMeter] = POD_METERS,
) -> MeasuredPods | None:
    """Return what pods of one namespace took by the first meter that saw nearly all of their time.

    What it missed is taken to be as the rest. None where there is none, `with_gpus` none that saw
    the GPUs too. Raises SignalUnavailable with the reason.
    """
    for meter in meters:
        if with_gpus and not meter.sees_gpus:
            continue
        pieces: dict[str, list[Piece]] = {}
        for some in _some_at_a_time(runs):
            length_s = max(run.until_s for run in some) - min(run.begin_s for run in some)
            pieces |= await meter.pieces(prometheus, some, step_of(length_s), with_gpus)
        seen = _seen(runs, pieces)
        # 0 J is no measurement: virtual machines show counters that stand still.
        if seen >= LEAST_SEEN and any(map(energy_j, pieces.values())):
            whole = {uid: scaled(mine, 1.0 / seen) for uid, mine in pieces.items()}
            return MeasuredPods(meter.name, whole)
    return None


def _some_at_a_time(runs: Sequence[PodRun]) -> Iterator[Sequence[PodRun]]:
    """Yield neighbours in time together, so that steps are as short as their runs."""
    by_time = sorted(runs, key=lambda run: run.begin_s)
    for begin in range(0, len(by_time), _AT_ONCE):
        yield by_time[begin : begin + _AT_ONCE]


def _seen(runs: Sequence[PodRun], pieces: Mapping[str, Sequence[Piece]]) -> float:
    """Return the share of all pods' time that was seen; pods of no time count as a second."""
    whole = seen = 0.0
    for run in runs:
        length_s = max(run.until_s - run.begin_s, 1.0)
        whole += length_s
        seen += length_s * share_seen(pieces.get(run.uid, ()), run.begin_s, run.until_s)
    return seen / whole if whole else 0.0


def step_of(length_s: float) -> float:
    """Return seconds between two points of runs of this length in all."""
    return max(math.ceil(length_s / _MOST_POINTS), _SHORTEST_STEP_S)
