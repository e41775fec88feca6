"""Work that was created before other tests: what its time brought."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from greensched_testbed.end_to_end.clusters import ClusterAccess

if TYPE_CHECKING:
    from tests.e2e.conftest import EarlyWork

ON_TIME_S = 10.0
PATIENCE_S = 240.0  # until its time comes, where this test runs alone


def test_a_job_is_released_at_its_planned_start_which_is_when_its_window_opens(
    cluster: ClusterAccess, early_work: "EarlyWork"
) -> None:
    space = early_work.namespace
    cluster.wait_until(lambda: cluster.is_complete("windowed", space), "it has run", PATIENCE_S)
    said = cluster.said("job", "windowed", space)
    released = datetime.fromisoformat(said["released-at"])
    assert 0.0 <= (released - early_work.opens).total_seconds() <= ON_TIME_S
    # A planning that begins when the window opens finds that now is best.
    assert said["release-reason"] in {"planned-start", "now-is-best"}


def test_a_cronjob_that_runs_by_the_clock_has_its_run_held(
    cluster: ClusterAccess, early_work: "EarlyWork"
) -> None:
    space = early_work.namespace
    cluster.wait_until(lambda: bool(runs(cluster, space)), "it is due", PATIENCE_S)
    (run,) = runs(cluster, space)
    cluster.wait_until(lambda: "planned-start" in cluster.said("job", run, space), "it is planned")
    assert cluster.is_held(run, space)
    created = cluster.get("job", run, space)["metadata"]["creationTimestamp"]
    assert datetime.fromisoformat(created) >= early_work.runs.astimezone(UTC)


def runs(cluster: ClusterAccess, namespace: str) -> list[str]:
    """Return the names of the CronJob's Jobs."""
    names = [each["metadata"]["name"] for each in cluster.list("jobs", namespace)]
    return [name for name in names if name.startswith("nightly-")]
