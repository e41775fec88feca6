"""Scaphandre. Names and labels: its docs_src/references/metrics.md (`--containers` for pods).

It divides all of the host's power among processes, idle watts too.
"""

from collections.abc import Iterable, Mapping, Sequence

from greensched_core.metering.energy_pieces import Piece, gauge_pieces
from greensched_core.metering.meters.meter import (
    BY_NODE,
    Answers,
    Meter,
    NodeMeter,
    PodMeter,
    by_node,
    tracks_of,
    tracks_over,
)
from greensched_core.metering.pod_runs import PodRun, any_of
from greensched_core.metering.prometheus import PrometheusApi, Sample
from greensched_core.units import watts_from_microwatts

_HOSTS = {"scaphandre": f"sum by ({BY_NODE}, value_source) (scaph_host_power_microwatts)"}


def _platforms(answers: Answers) -> Mapping[str, float]:
    return _watts(each for each in answers.get("scaphandre", ()) if _is_of_platform(each))


def _packages(answers: Answers) -> Mapping[str, float]:
    return _watts(each for each in answers.get("scaphandre", ()) if not _is_of_platform(each))


def _is_of_platform(sample: Sample) -> bool:
    """Return whether Scaphandre read RAPL's psys, as `powercap_rapl_psys` (exporters/mod.rs)."""
    return sample.labels.get("value_source", "").endswith("_psys")


def _watts(samples: Iterable[Sample]) -> Mapping[str, float]:
    found = by_node(samples)
    return {node: watts_from_microwatts(microwatts) for node, microwatts in found.items()}


async def _pieces(
    prometheus: PrometheusApi, runs: Sequence[PodRun], step_s: float, with_gpus: bool
) -> dict[str, list[Piece]]:
    tracks = await tracks_over(prometheus, question(runs), runs, step_s)
    return {
        run.uid: [
            piece
            for track in tracks_of(tracks, "kubernetes_pod_name", run.name)
            for piece in gauge_pieces(
                [(at_s, watts_from_microwatts(uw)) for at_s, uw in track.points],
                run.begin_s, run.until_s, step_s,
            )
        ]
        for run in runs
    }  # fmt: skip


def question(runs: Sequence[PodRun]) -> str:
    """Return the PromQL of the microwatts of pods of one namespace."""
    return (
        "sum by (kubernetes_pod_name) (scaph_process_power_consumption_microwatts{"
        f'kubernetes_pod_namespace="{runs[0].namespace}",'
        f'kubernetes_pod_name=~"{any_of(run.name for run in runs)}"}})'
    )


SCAPHANDRE = Meter(
    nodes=(  # a host's series is of its platform (preferred) or of its packages
        NodeMeter(
            "scaphandre-psys",
            "Scaphandre: `scaph_host_power_microwatts` whose `value_source` ends with `_psys`",
            _HOSTS,
            _platforms,
            sees_gpus=True,
        ),
        NodeMeter("scaphandre", "the same with another `value_source`, or none", _HOSTS, _packages),
    ),
    pods=PodMeter(
        "scaphandre",
        "Scaphandre with `--containers`: `scaph_process_power_consumption_microwatts` of the pod's "
        "name. A share of all that the host draws, including idle watts",
        "Scaphandre, measured, a share of idle watts too, by Prometheus",
        _pieces,
        sees_gpus=False,
    ),
)
