"""What the end-to-end tests read from the metrics of two extenders."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from greensched_extender.metrics import ExtenderMetrics, RequestOutcome
from greensched_testbed.end_to_end.clusters import ClusterAccess
from greensched_testbed.end_to_end.release import ChartRelease


@dataclass
class TwoExtenders:
    """A cluster as far as it is asked here: its pods, and what `exec` in each prints."""

    metrics: dict[str, ExtenderMetrics]

    def list(self, *_: str) -> list[dict[str, Any]]:
        return [{"metadata": {"name": name}} for name in self.metrics]

    def kubectl(self, verb: str, pod: str, *_: str) -> str:
        assert verb == "exec"
        return self.metrics[pod].expose(lambda: None).decode()


def test_a_pod_that_one_of_two_extenders_has_scored_is_scored() -> None:
    first, second = ExtenderMetrics(), ExtenderMetrics()
    cluster = cast("ClusterAccess", TwoExtenders({"a": first, "b": second}))
    release = ChartRelease(cluster, Path(), 0.0)
    assert (release.scored(), release.unscored()) == (0.0, 0.0)
    for scores, other in ((first, second), (second, first)):
        scores.request("prioritize", RequestOutcome.OK, 0.001)
        scores.count_binding(True)
        other.count_binding(False)
    assert (release.scored(), release.unscored()) == (2.0, 0.0)
    for each in (first, second):
        each.count_binding(False)
    assert (release.scored(), release.unscored()) == (2.0, 1.0)
