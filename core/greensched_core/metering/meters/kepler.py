"""Kepler from 0.10 on. Names and labels: its docs/user/metrics.md.

`pod_id` is the pod's UID, `state` is running or terminated, and a counter begins with its pod.
Pods' counters are of active power, without idle watts. Zone psys includes package and dram.
"""

from collections.abc import Mapping, Sequence

from greensched_core.metering.energy_pieces import Piece, counter_pieces, gauge_pieces, share_seen
from greensched_core.metering.meters.meter import (
    BY_NODE,
    LEAST_SEEN,
    Answers,
    Meter,
    NodeMeter,
    PodMeter,
    answer_to,
    by_node,
    package_and_dram,
    tracks_of,
    tracks_over,
)
from greensched_core.metering.pod_runs import PodRun, any_of
from greensched_core.metering.prometheus import PrometheusApi, Sample, Track

_CPU = {"kepler-cpu": f"sum by ({BY_NODE}, zone) (kepler_node_cpu_watts)"}


def _zone(answers: Answers, zone: str) -> list[Sample]:
    return [each for each in answers.get("kepler-cpu", ()) if each.labels.get("zone") == zone]


def _packages(answers: Answers) -> Mapping[str, float]:
    return package_and_dram(_zone(answers, "package"), _zone(answers, "dram"))


def _platforms(answers: Answers) -> Mapping[str, float]:
    return by_node(_zone(answers, "psys"))


async def _pieces(
    prometheus: PrometheusApi, runs: Sequence[PodRun], step_s: float, with_gpus: bool
) -> dict[str, list[Piece]]:
    tracks = await tracks_over(prometheus, question(runs, step_s), runs, step_s)
    found = {run.uid: _of_run(run, tracks) for run in runs}
    if with_gpus:
        gpus = await tracks_over(prometheus, gpu_question(runs), runs, step_s)
        for run in runs:
            mine = [
                piece
                for track in tracks_of(gpus, "pod_id", run.uid)
                for piece in gauge_pieces(track.points, run.begin_s, run.until_s, step_s)
            ]
            # If its GPUs were not seen, a run is not measured.
            seen = share_seen(mine, run.begin_s, run.until_s) >= LEAST_SEEN
            found[run.uid] = found[run.uid] + mine if seen else []
    return found


def question(runs: Sequence[PodRun], step_s: float) -> str:
    """Return the PromQL of the joules of pods: the last value of each step.

    It includes series that ended within the step.
    """
    series = (
        f'kepler_pod_cpu_joules_total{{pod_id=~"{any_of(run.uid for run in runs)}",'
        'zone=~"package|dram|psys"}'
    )
    return f"max by (pod_id, zone) (last_over_time({series}[{step_s:g}s]))"


def gpu_question(runs: Sequence[PodRun]) -> str:
    """Return the PromQL of the watts of pods' GPUs, by Kepler from 0.11.4."""
    return f'max by (pod_id) (kepler_pod_gpu_watts{{pod_id=~"{any_of(r.uid for r in runs)}"}})'


def _of_run(run: PodRun, tracks: Sequence[Track]) -> list[Piece]:
    mine = _without_overlap(list(tracks_of(tracks, "pod_id", run.uid)))
    return [
        piece for each in mine for piece in counter_pieces(each.points, run.begin_s, run.until_s)
    ]


def _without_overlap(tracks: list[Track]) -> list[Track]:
    """Return package and memory, else the platform, which includes both."""
    parts = [track for track in tracks if track.labels.get("zone") != "psys"]
    has_package = any(track.labels.get("zone") == "package" for track in parts)
    return parts if has_package else [t for t in tracks if t.labels.get("zone") == "psys"]


KEPLER = Meter(
    nodes=(
        NodeMeter(
            "kepler",
            "Kepler 0.10 and later: `kepler_node_cpu_watts`, zone package, plus dram where there "
            "is one",
            _CPU,
            _packages,
        ),
        NodeMeter(
            "kepler-psys",
            "the same, where there is no package: zone psys",
            _CPU,
            _platforms,
            sees_gpus=True,
        ),
    ),
    gpus=NodeMeter(
        "kepler-gpu",
        "Kepler 0.10 and later: `kepler_node_gpu_watts`",
        {"kepler-gpu": f"sum by ({BY_NODE}) (kepler_node_gpu_watts)"},
        answer_to("kepler-gpu"),
    ),
    pods=PodMeter(
        "kepler",
        "Kepler 0.10 and later: `kepler_pod_cpu_joules_total` of the pod's UID, zones package and "
        "dram, else psys; for work with GPUs also `kepler_pod_gpu_watts` (from 0.11.4). Active "
        "power",
        "Kepler, measured, by Prometheus",
        _pieces,
    ),
)
