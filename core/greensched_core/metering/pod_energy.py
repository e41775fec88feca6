"""Energy of pods from start to end, by the first meter that saw them, read from Prometheus.

If no meter saw a run, the kubelet's estimate counts.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from greensched_core.metering.energy_pieces import Piece, energy_j, scaled, share_seen
from greensched_core.metering.meters.catalogue import POD_METERS
from greensched_core.metering.meters.meter import LEAST_SEEN, PodMeter
from greensched_core.metering.pod_runs import PodRun
from greensched_core.metering.prometheus import PrometheusApi

_MOST_POINTS = 240
_SHORTEST_STEP_S = 5.0
_AT_ONCE = 20  # pods in one query, so that it fits into a URL


@dataclass(frozen=True, slots=True)
class MeasuredPods:
    """Energy of pods by UID, in pieces that make up their whole runs."""

    meter: str  # its name
    pieces: Mapping[str, Sequence[Piece]]


async def measured_pods(
    prometheus: PrometheusApi,
    runs: Sequence[PodRun],
    *,
    with_gpus: bool = False,
    meters: Sequence[PodMeter] = POD_METERS,
) -> MeasuredPods | None:
    """Return the energy of one namespace's pods by the first meter that saw nearly all their time.

    The time that it missed counts like the rest. None if no meter did; `with_gpus` requires a meter
    that sees GPUs. Raises SignalUnavailable with the reason.
    """
    for meter in meters:
        if with_gpus and not meter.sees_gpus:
            continue
        pieces: dict[str, list[Piece]] = {}
        for batch in _batches(runs):
            length_s = max(run.until_s for run in batch) - min(run.begin_s for run in batch)
            pieces |= await meter.pieces(prometheus, batch, step_of(length_s), with_gpus)
        seen = _seen(runs, pieces)
        # 0 J is not a measurement: in virtual machines the counters stand still.
        if seen >= LEAST_SEEN and any(map(energy_j, pieces.values())):
            whole = {uid: scaled(mine, 1.0 / seen) for uid, mine in pieces.items()}
            return MeasuredPods(meter.name, whole)
    return None


def _batches(runs: Sequence[PodRun]) -> Iterator[Sequence[PodRun]]:
    """Yield batches of runs that are close in time, so that query steps stay short."""
    by_time = sorted(runs, key=lambda run: run.begin_s)
    for begin in range(0, len(by_time), _AT_ONCE):
        yield by_time[begin : begin + _AT_ONCE]


def _seen(runs: Sequence[PodRun], pieces: Mapping[str, Sequence[Piece]]) -> float:
    """Return the share of all pods' time that was seen; a run counts as at least a second."""
    whole = seen = 0.0
    for run in runs:
        length_s = max(run.until_s - run.begin_s, 1.0)
        whole += length_s
        seen += length_s * share_seen(pieces.get(run.uid, ()), run.begin_s, run.until_s)
    return seen / whole if whole else 0.0


def step_of(length_s: float) -> float:
    """Return the seconds between points for runs that span `length_s` together."""
    return max(math.ceil(length_s / _MOST_POINTS), _SHORTEST_STEP_S)
