"""What pods took from start to end, by Kepler, Scaphandre or the kubelet, read from Prometheus.

Names and labels: Kepler docs/user/metrics.md (0.10 and later; `pod_id` is the pod's UID, `state`
running or terminated; a counter begins with its pod) and its 0.9 collector, Scaphandre
docs_src/references/metrics.md (`--containers`). Kepler's are of active power, without a node's idle
watts; Scaphandre divides all that the host draws among its processes. The kubelet counts CPU time
alone: its word is an estimate, by `cpu_energy`, and counts where no meter saw a run.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from greensched_core.power.kubelet_energy import kubelet_pieces
from greensched_core.power.pod_courses import (
    Piece,
    counter_pieces,
    energy_j,
    gauge_pieces,
    scaled,
    share_seen,
)
from greensched_core.power.pod_runs import PodRun, any_of
from greensched_core.power.prometheus import PrometheusApi, Track
from greensched_core.units import watts_from_microwatts

LEAST_SEEN = 0.8  # of a run's time; what a meter saw less of is not measured by it
_MOST_POINTS = 240
_SHORTEST_STEP_S = 5.0
_AFTERWARDS_S = 60.0  # for which Kepler's word on a pod that has ended is looked for
_AT_ONCE = 20  # pods in one question: it fits into an address


class PodMeter(StrEnum):
    """Who measured, best first."""

    KEPLER = "kepler"
    OLD_KEPLER = "kepler-0.9"
    SCAPHANDRE = "scaphandre"
    KUBELET = "kubelet"


ESTIMATING = frozenset({PodMeter.KUBELET})  # their word is an estimate: nobody measured energy
_SEE_NO_BOARDS = frozenset({PodMeter.SCAPHANDRE, PodMeter.KUBELET})


@dataclass(frozen=True, slots=True)
class MeasuredPods:
    """What pods took, by UID: pieces that make up their whole runs."""

    meter: PodMeter
    pieces: Mapping[str, Sequence[Piece]]


async def measured_pods(
    prometheus: PrometheusApi,
    runs: Sequence[PodRun],
    *,
    with_gpus: bool = False,
    meters: Sequence[PodMeter] = tuple(PodMeter),
) -> MeasuredPods | None:
    """Return what pods of one namespace took by the first meter that saw nearly all of their time.

    What it missed is taken to be as the rest. None where there is none, `with_gpus` none that saw
    the boards too. Raises SignalUnavailable with the reason.
    """
    for meter in meters:
        if with_gpus and meter in _SEE_NO_BOARDS:
            continue
        pieces: dict[str, list[Piece]] = {}
        for some in _some_at_a_time(runs):
            pieces |= await _pieces(prometheus, meter, some, with_gpus=with_gpus)
        seen = _seen(runs, pieces)
        # 0 J is no measurement: virtual machines show counters that stand still.
        if seen >= LEAST_SEEN and any(map(energy_j, pieces.values())):
            whole = {uid: scaled(mine, 1.0 / seen) for uid, mine in pieces.items()}
            return MeasuredPods(meter, whole)
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


async def _pieces(
    prometheus: PrometheusApi, meter: PodMeter, runs: Sequence[PodRun], *, with_gpus: bool
) -> dict[str, list[Piece]]:
    begin_s, until_s = min(run.begin_s for run in runs), max(run.until_s for run in runs)
    step_s = step_of(until_s - begin_s)
    if meter is PodMeter.KUBELET:
        return await kubelet_pieces(prometheus, runs, step_s)
    until_s += max(_AFTERWARDS_S, step_s)
    tracks = await prometheus.over(question(meter, runs, step_s), begin_s + step_s, until_s, step_s)
    found = {run.uid: _of_run(meter, run, tracks, step_s) for run in runs}
    if with_gpus and meter is PodMeter.KEPLER:
        asked = gpu_question(runs)
        boards = await prometheus.over(asked, begin_s + step_s, until_s, step_s)
        for run in runs:
            mine = [
                piece
                for track in _mine(boards, "pod_id", run.uid)
                for piece in gauge_pieces(track.points, run.begin_s, run.until_s, step_s)
            ]
            # Without its boards a run is not measured.
            seen = share_seen(mine, run.begin_s, run.until_s) >= LEAST_SEEN
            found[run.uid] = found[run.uid] + mine if seen else []
    return found


def step_of(length_s: float) -> float:
    """Return seconds between two points of runs of this length in all."""
    return max(math.ceil(length_s / _MOST_POINTS), _SHORTEST_STEP_S)


def question(meter: PodMeter, runs: Sequence[PodRun], step_s: float) -> str:
    """Return the PromQL that gives a meter's word on pods of one namespace at each step."""
    space, names = runs[0].namespace, any_of(run.name for run in runs)
    if meter is PodMeter.SCAPHANDRE:
        return (
            "sum by (kubernetes_pod_name) (scaph_process_power_consumption_microwatts{"
            f'kubernetes_pod_namespace="{space}",kubernetes_pod_name=~"{names}"}})'
        )
    if meter is PodMeter.OLD_KEPLER:
        by, series = (
            "pod_name, container_id, container_name",
            f'kepler_container_joules_total{{mode="dynamic",container_namespace="{space}",'
            f'pod_name=~"{names}"}}',
        )
    else:
        by, series = (
            "pod_id, zone",
            f'kepler_pod_cpu_joules_total{{pod_id=~"{any_of(run.uid for run in runs)}",'
            'zone=~"package|dram|psys"}',
        )
    # The last word of each step, also of a series that has ended within it.
    return f"max by ({by}) (last_over_time({series}[{step_s:g}s]))"


def gpu_question(runs: Sequence[PodRun]) -> str:
    """Return the PromQL of the watts of pods' boards, by Kepler from 0.11.4."""
    return f'max by (pod_id) (kepler_pod_gpu_watts{{pod_id=~"{any_of(r.uid for r in runs)}"}})'


def _of_run(meter: PodMeter, run: PodRun, tracks: Sequence[Track], step_s: float) -> list[Piece]:
    begin_s, until_s = run.begin_s, run.until_s
    if meter is PodMeter.SCAPHANDRE:
        return [
            piece
            for track in _mine(tracks, "kubernetes_pod_name", run.name)
            for piece in gauge_pieces(
                [(at_s, watts_from_microwatts(uw)) for at_s, uw in track.points],
                begin_s, until_s, step_s,
            )
        ]  # fmt: skip
    if meter is PodMeter.OLD_KEPLER:
        mine = list(_mine(tracks, "pod_name", run.name))
    else:
        mine = _without_overlap(list(_mine(tracks, "pod_id", run.uid)))
    return [piece for each in mine for piece in counter_pieces(each.points, begin_s, until_s)]


def _without_overlap(tracks: list[Track]) -> list[Track]:
    """Return package and memory, else the platform, which has both in it."""
    parts = [track for track in tracks if track.labels.get("zone") != "psys"]
    has_package = any(track.labels.get("zone") == "package" for track in parts)
    return parts if has_package else [t for t in tracks if t.labels.get("zone") == "psys"]


def _mine(tracks: Sequence[Track], label: str, value: str) -> Iterator[Track]:
    return (track for track in tracks if track.labels.get(label) == value)
