"""What the watches of Jobs and pods make of a Job's run."""

from typing import Any

import msgspec
import pytest

from greensched_core.clock import ManualClock
from greensched_testbed.replay import ReplayProgress
from greensched_testbed.stress.job_log import JobLog, JobRun, Seen
from greensched_testbed.stress.job_objects import JOB_LABEL
from greensched_testbed.stress.suite import StressJob, StressKind

JOB = StressJob("cpu-0", StressKind.CPU, 0.0, 1.0, 2**26, 0, 900, 6.0)


def seen(status: dict[str, Any], node: str = "", name: str = "cpu-0", deleted_at: str = "") -> Seen:
    meta: dict[str, Any] = {"name": f"{name}-x7k", "uid": "u", "labels": {JOB_LABEL: name}}
    if deleted_at:
        meta["deletionTimestamp"] = deleted_at
    return msgspec.convert({"metadata": meta, "spec": {"nodeName": node}, "status": status}, Seen)


def failed_job() -> Seen:
    return seen({"conditions": [{"type": "Failed", "status": "True", "message": "gone"}]})


def waiting_for_an_image() -> Seen:
    state = {"state": {"waiting": {"reason": "ImagePullBackOff"}}}
    return seen({"phase": "Pending", "containerStatuses": [state]}, "n1")


def run_of(*events: Seen) -> tuple[JobRun, JobLog]:
    """Show a log these events, one a second, after the Job was created."""
    clock, told = ManualClock(100.0), list[ReplayProgress]()
    log = JobLog([JOB], clock, told.append)
    log.created("cpu-0")
    for event in events:
        clock.advance(1.0)
        log.upsert(event)
    return log.runs()[0], log


def test_a_jobs_times_are_those_at_which_the_watch_first_tells() -> None:
    run, log = run_of(
        seen({"phase": "Pending"}), seen({"phase": "Pending"}, "n1"),
        seen({"phase": "Running"}, "n1"), seen({"phase": "Running"}, "n1"),
        seen({"phase": "Succeeded"}, "n1"), seen({"phase": "Succeeded"}, "n1"),
    )  # fmt: skip
    assert (run.created_at, run.bound_at, run.started_at, run.finished_at) == (100, 102, 103, 105)
    assert (run.end, run.node, run.completion_s, run.run_s) == ("completed", "n1", 5.0, 2.0)
    assert log.complete.is_set()


@pytest.mark.parametrize(
    ("event", "end", "why"),
    [
        pytest.param(failed_job(), "failed", "", id="its-pod-was-deleted"),
        pytest.param(waiting_for_an_image(), "", "ImagePullBackOff", id="no-image"),
        pytest.param(
            seen({"conditions": [{"type": "Complete", "status": "True"}]}), "", "",
            id="its-pod-tells-of-its-end",
        ),
        pytest.param(
            seen({"phase": "Pending", "conditions": [
                {"type": "PodScheduled", "status": "False", "message": "no room"}]}),
            "", "no room", id="no-room",
        ),
        pytest.param(
            seen({"phase": "Failed", "containerStatuses": [
                {"state": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}]}, "n1"),
            "failed", "OOMKilled, exit code 137", id="killed",
        ),
        pytest.param(seen({"phase": "Succeeded"}, "n1", "another"), "", "", id="somebody-elses"),
    ],
)  # fmt: skip
def test_an_end_and_its_reason_are_reported(event: Seen, end: str, why: str) -> None:
    run, log = run_of(event)
    assert (run.end, run.why, log.complete.is_set()) == (end, why, bool(end))


@pytest.mark.parametrize(
    ("events", "never_ran"),
    [
        pytest.param([seen({"phase": "Failed"})], True, id="its-pod-failed-without-a-node"),
        pytest.param(
            [seen({"phase": "Pending"}, deleted_at="2026-11-25T00:00:00Z"), failed_job()],
            True, id="its-pod-was-deleted-before-it-had-a-node",
        ),
        pytest.param([failed_job()], False, id="its-pod-was-never-seen"),
        pytest.param(
            [seen({"phase": "Pending"}), failed_job()], False, id="its-pod-may-be-bound-since"
        ),
        pytest.param([waiting_for_an_image(), failed_job()], False, id="its-pod-had-a-node"),
        pytest.param([seen({"phase": "Failed"}, "n1")], False, id="its-pod-failed-on-a-node"),
        pytest.param(
            [seen({"phase": "Pending"}, deleted_at="2026-11-25T00:00:00Z"),
             seen({"phase": "Running"}, "n1"), failed_job()],
            False, id="a-later-pod-ran",
        ),
    ],
)  # fmt: skip
def test_a_job_never_ran_only_if_its_pod_ended_without_a_node(
    events: list[Seen], never_ran: bool
) -> None:
    run, log = run_of(*events)
    assert (run.end, run.never_ran) == ("failed", never_ran)
    assert not run.never_ran or run.started_at is None
    assert log.complete.is_set()
