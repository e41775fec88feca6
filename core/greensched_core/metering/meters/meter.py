"""Defines a meter: Prometheus queries for nodes and pods, and how to read the answers.

It also holds code that meters share. The file of an exporter names its series and labels.
"""

import math
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from greensched_core.metering.energy_pieces import Piece
from greensched_core.metering.pod_runs import PodRun
from greensched_core.metering.prometheus import PrometheusApi, Sample, Track

# Labels that name the node: relabelled from the pod's node, set by the exporter, or its address.
NODE_LABELS = ("node", "node_name", "exported_instance", "Hostname", "hostname", "instance")
BY_NODE = ", ".join(NODE_LABELS)
LEAST_SEEN = 0.8  # of a run's time; a meter that saw less did not measure it
_PORT = re.compile(r":\d+$", re.ASCII)
_AFTERWARDS_S = 60.0  # after a pod's end, to read Kepler's last values of it

Answers = Mapping[str, Sequence[Sample]]  # by name of the query
AskPods = Callable[
    [PrometheusApi, Sequence[PodRun], float, bool], Awaitable[dict[str, list[Piece]]]
]


@dataclass(frozen=True, slots=True)
class NodeMeter:
    """One way to measure the watts of nodes, or of only their GPUs."""

    source: str  # its name in readings and `greensched nodes`
    about: str  # exporter and series, in Markdown, for docs/power.md
    questions: Mapping[str, str]  # PromQL by name; rates are means over [$window]
    watts: Callable[[Answers], Mapping[str, float]]  # by node name; only finite values
    sees_gpus: bool = False  # it measures at the plug or the whole platform


@dataclass(frozen=True, slots=True)
class PodMeter:
    """One way to measure the joules of pods from start to end.

    `pieces` takes runs of pods of one namespace, the step in seconds, and whether to include GPUs.
    It returns the energy of each run by UID, empty for a run that it did not see. It raises
    SignalUnavailable with the reason.
    """

    name: str  # its name in the ledger
    about: str  # exporter, series and their content, in Markdown, for docs/ledger.md
    meaning: str  # for reports
    pieces: AskPods
    sees_gpus: bool = True
    is_estimate: bool = False  # computed, not measured


@dataclass(frozen=True, slots=True)
class Meter:
    """All that one exporter measures."""

    nodes: tuple[NodeMeter, ...] = ()  # best first
    gpus: NodeMeter | None = None  # added to a node meter that does not see GPUs
    pods: PodMeter | None = None


def rate(metric: str, function: str = "sum") -> str:
    """Return the PromQL of a counter's rate by node."""
    return f"{function} by ({BY_NODE}) (rate({metric}[$window]))"


def by_node(samples: Iterable[Sample]) -> dict[str, float]:
    """Return the finite, non-negative values by node; a meter scraped twice counts once."""
    values: dict[str, float] = {}
    for sample in samples:
        node = node_named(sample.labels)
        if node and math.isfinite(sample.value) and sample.value >= 0:
            values[node] = max(values.get(node, 0.0), sample.value)
    return values


def node_named(labels: Mapping[str, str]) -> str:
    """Return the node of a series; "" if none of its labels names one."""
    for label in NODE_LABELS:
        name = labels.get(label)
        if name:
            return _PORT.sub("", name)
    return ""


def answer_to(question: str) -> Callable[[Answers], Mapping[str, float]]:
    """Return a function that reads the answer to one query as watts by node."""
    return lambda answers: by_node(answers.get(question, ()))


def package_and_dram(package: Iterable[Sample], dram: Iterable[Sample]) -> dict[str, float]:
    """Return package watts by node, plus memory if metered; memory alone does not count."""
    memory = by_node(dram)
    return {node: watts + memory.get(node, 0.0) for node, watts in by_node(package).items()}


async def tracks_over(
    prometheus: PrometheusApi, query: str, runs: Sequence[PodRun], step_s: float
) -> list[Track]:
    """Return the values of a query at each step of the runs and shortly after.

    Raises SignalUnavailable with the reason.
    """
    begin_s = min(run.begin_s for run in runs) + step_s
    until_s = max(run.until_s for run in runs) + max(_AFTERWARDS_S, step_s)
    return await prometheus.over(query, begin_s, until_s, step_s)


def tracks_of(tracks: Iterable[Track], label: str, value: str) -> Iterator[Track]:
    """Yield the tracks whose label has that value."""
    return (track for track in tracks if track.labels.get(label) == value)
