"""Kepler to 0.9, with its collector's names and labels; joules of pods include GPUs."""

from collections.abc import Mapping, Sequence

from greensched_core.metering.energy_pieces import Piece, counter_pieces
from greensched_core.metering.meters.meter import (
    Answers,
    Meter,
    NodeMeter,
    PodMeter,
    answer_to,
    package_and_dram,
    rate,
    tracks_of,
    tracks_over,
)
from greensched_core.metering.pod_runs import PodRun, any_of
from greensched_core.metering.prometheus import PrometheusApi


def _packages(answers: Answers) -> Mapping[str, float]:
    package, dram = (answers.get(f"kepler-0.9-{part}", ()) for part in ("package", "dram"))
    return package_and_dram(package, dram)


async def _pieces(
    prometheus: PrometheusApi, runs: Sequence[PodRun], step_s: float, with_gpus: bool
) -> dict[str, list[Piece]]:
    tracks = await tracks_over(prometheus, question(runs, step_s), runs, step_s)
    return {
        run.uid: [
            piece
            for track in tracks_of(tracks, "pod_name", run.name)
            for piece in counter_pieces(track.points, run.begin_s, run.until_s)
        ]
        for run in runs
    }


def question(runs: Sequence[PodRun], step_s: float) -> str:
    """Return the PromQL of the joules of pods of one namespace, the last value of each step.

    It includes series that ended within the step.
    """
    series = (
        f'kepler_container_joules_total{{mode="dynamic",container_namespace="{runs[0].namespace}",'
        f'pod_name=~"{any_of(run.name for run in runs)}"}}'
    )
    by = "pod_name, container_id, container_name"
    return f"max by ({by}) (last_over_time({series}[{step_s:g}s]))"


OLD_KEPLER = Meter(
    nodes=(
        NodeMeter(
            "kepler-0.9",
            "Kepler to 0.9: rates of `kepler_node_package_joules_total`, plus dram",
            {
                "kepler-0.9-package": rate("kepler_node_package_joules_total"),
                "kepler-0.9-dram": rate("kepler_node_dram_joules_total"),
            },
            _packages,
        ),
        NodeMeter(
            "kepler-0.9-platform",
            "the same, where there is no package: `kepler_node_platform_joules_total`",
            {"kepler-0.9-platform": rate("kepler_node_platform_joules_total")},
            answer_to("kepler-0.9-platform"),
            sees_gpus=True,
        ),
    ),
    gpus=NodeMeter(
        "kepler-0.9-gpu",
        "Kepler to 0.9: rates of `kepler_node_gpu_joules_total`",
        {"kepler-0.9-gpu": rate("kepler_node_gpu_joules_total")},
        answer_to("kepler-0.9-gpu"),
    ),
    pods=PodMeter(
        "kepler-0.9",
        'Kepler to 0.9: `kepler_container_joules_total{mode="dynamic"}` of the pod\'s name. Active '
        "power, including GPUs",
        "Kepler to 0.9, measured, by Prometheus",
        _pieces,
    ),
)
