"""What a meter is: what to ask Prometheus of nodes and of pods, and what the answers mean.

And what meters have in common. What an exporter calls its series and labels stands in its file.
"""

import math
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from greensched_core.power.pod_courses import Piece
from greensched_core.power.pod_runs import PodRun
from greensched_core.power.prometheus import PrometheusApi, Sample, Track

# Who is measured: relabelled from the pod's node, or what the exporter itself says, or its address.
NODE_LABELS = ("node", "node_name", "exported_instance", "Hostname", "hostname", "instance")
BY_NODE = ", ".join(NODE_LABELS)
LEAST_SEEN = 0.8  # of a run's time; what a meter saw less of is not measured by it
_PORT = re.compile(r":\d+$", re.ASCII)
_AFTERWARDS_S = 60.0  # for which Kepler's word on a pod that has ended is looked for

Answers = Mapping[str, Sequence[Sample]]  # by the name of the question
AskPods = Callable[
    [PrometheusApi, Sequence[PodRun], float, bool], Awaitable[dict[str, list[Piece]]]
]


@dataclass(frozen=True, slots=True)
class NodeMeter:
    """The watts of nodes, or of their GPUs alone, by one way to measure them."""

    source: str  # as readings and `greensched nodes` call it
    about: str  # whose and which series, for docs/power.md, in Markdown
    questions: Mapping[str, str]  # PromQL by a name; rates are means over [$window]
    watts: Callable[[Answers], Mapping[str, float]]  # by node's name; NaN and the like left out
    sees_gpus: bool = False  # it measures at the plug or the whole platform


@dataclass(frozen=True, slots=True)
class PodMeter:
    """The joules of pods from start to end by one way to measure them.

    `pieces` is asked about runs of pods of one namespace, in steps of so many seconds, and whether
    their GPUs count too. It returns what each run took, by UID, and nothing of one that it did
    not see; it raises SignalUnavailable with the reason.
    """

    name: str  # as the ledger calls it
    about: str  # for docs/ledger.md: whose and which series and what is in them, in Markdown
    meaning: str  # for reports
    pieces: AskPods
    sees_gpus: bool = True
    is_estimate: bool = False  # nobody measured energy


@dataclass(frozen=True, slots=True)
class Meter:
    """All that one exporter tells; what it does not is left out."""

    nodes: tuple[NodeMeter, ...] = ()  # best first
    gpus: NodeMeter | None = None  # on top of a meter of nodes that sees none
    pods: PodMeter | None = None


def rate(metric: str, function: str = "sum") -> str:
    """Return the PromQL of a counter's rise per second by node."""
    return f"{function} by ({BY_NODE}) (rate({metric}[$window]))"


def by_node(samples: Iterable[Sample]) -> dict[str, float]:
    """Return the finite, non-negative values by node; one meter scraped twice counts once."""
    values: dict[str, float] = {}
    for sample in samples:
        node = node_named(sample.labels)
        if node and math.isfinite(sample.value) and sample.value >= 0:
            values[node] = max(values.get(node, 0.0), sample.value)
    return values


def node_named(labels: Mapping[str, str]) -> str:
    """Return the node that a series is of, "" where none of its labels tells."""
    for label in NODE_LABELS:
        name = labels.get(label)
        if name:
            return _PORT.sub("", name)
    return ""


def answer_to(question: str) -> Callable[[Answers], Mapping[str, float]]:
    """Return what reads the answer to one question as watts by node."""
    return lambda answers: by_node(answers.get(question, ()))


def package_and_dram(package: Iterable[Sample], dram: Iterable[Sample]) -> dict[str, float]:
    """Add memory where it is metered apart; memory alone is no node."""
    memory = by_node(dram)
    return {node: watts + memory.get(node, 0.0) for node, watts in by_node(package).items()}


async def tracks_over(
    prometheus: PrometheusApi, query: str, runs: Sequence[PodRun], step_s: float
) -> list[Track]:
    """Return what a query gives at each step of the runs and shortly after.

    Raises SignalUnavailable with the reason.
    """
    begin_s = min(run.begin_s for run in runs) + step_s
    until_s = max(run.until_s for run in runs) + max(_AFTERWARDS_S, step_s)
    return await prometheus.over(query, begin_s, until_s, step_s)


def tracks_of(tracks: Iterable[Track], label: str, value: str) -> Iterator[Track]:
    """Yield the tracks that carry a label of that value."""
    return (track for track in tracks if track.labels.get(label) == value)
