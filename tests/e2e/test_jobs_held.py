"""A Job that may wait: held, planned, described, and started by whoever says so."""

from collections.abc import Callable

import pytest

from greensched_testbed.end_to_end.clusters import ClusterAccess
from greensched_testbed.end_to_end.work import cron_job, job, pod, pod_template

PLANNED = "planned-start"


def hold(cluster: ClusterAccess, shell: str, users: str, name: str = "train", **said: str) -> None:
    """Create a Job that may wait for six hours, and wait until its start is planned."""
    body = job(name, pod_template(shell, "echo trained"), deadline="6h", runtime="10m", **said)
    cluster.apply(body, namespace=users)
    cluster.wait_until(lambda: PLANNED in cluster.said("job", name, users), f"{name} is planned")
    assert cluster.is_held(name, users)


def has_run(cluster: ClusterAccess, users: str, name: str = "train") -> bool:
    """Wait for a Job's end and say whether its container ran."""
    cluster.wait_until(lambda: cluster.is_complete(name, users), f"{name} has run")
    return "trained" in cluster.kubectl("logs", f"job/{name}", "--namespace", users)


def test_it_is_held_and_says_until_when_and_why(
    cluster: ClusterAccess, users: str, shell: str, greensched: Callable[..., str]
) -> None:
    hold(cluster, shell, users)
    said = cluster.said("job", "train", users)
    assert said[PLANNED] < said["latest-start"]
    assert said["hold-reason"]
    assert not cluster.list("pods", users)
    told = cluster.kubectl("describe", "job", "train", "--namespace", users)
    assert said[PLANNED] in told and "Held" in told
    assert "train" in greensched("status", "--namespace", users)


def test_it_is_started_by_the_command_line(
    cluster: ClusterAccess, users: str, shell: str, greensched: Callable[..., str]
) -> None:
    hold(cluster, shell, users)
    greensched("release", "train", "--namespace", users)
    assert has_run(cluster, users)
    assert cluster.said("job", "train", users)["release-reason"] == "run-now"


def test_it_is_started_by_an_annotation(cluster: ClusterAccess, users: str, shell: str) -> None:
    hold(cluster, shell, users)
    cluster.kubectl("annotate", "job", "train", "greensched.io/run-now=true", "-n", users)
    assert has_run(cluster, users)
    assert cluster.said("job", "train", users)["release-reason"] == "run-now"


def test_it_stays_started_when_its_user_lifts_the_suspension(
    cluster: ClusterAccess, users: str, shell: str
) -> None:
    hold(cluster, shell, users)
    cluster.kubectl("patch", "job", "train", "-n", users, "-p", '{"spec":{"suspend":false}}')
    assert has_run(cluster, users)
    told = cluster.said
    cluster.wait_until(lambda: "latest-start" not in told("job", "train", users), "marks are off")
    assert told("job", "train", users)["release-reason"] == "started-by-others"


def test_a_gang_is_planned_for_one_moment_and_starts_together(
    cluster: ClusterAccess, users: str, shell: str, greensched: Callable[..., str]
) -> None:
    for name in ("left", "right"):
        hold(cluster, shell, users, name, gang="pair")
    starts = {cluster.said("job", name, users)[PLANNED] for name in ("left", "right")}
    assert len(starts) == 1
    greensched("release", "left", "--namespace", users)
    assert has_run(cluster, users, "left")
    assert has_run(cluster, users, "right")


def test_a_bare_pod_is_gated_and_runs_when_asked_to(
    cluster: ClusterAccess, users: str, shell: str
) -> None:
    said = {"greensched.io/deadline": "6h", "greensched.io/runtime": "10m"}
    template = pod_template(shell, "echo trained", annotations=said)
    cluster.apply(pod("bare", template), namespace=users)
    cluster.wait_until(lambda: PLANNED in cluster.said("pod", "bare", users), "it is planned")
    gates = cluster.get("pod", "bare", users)["spec"]["schedulingGates"]
    assert [each["name"] for each in gates] == ["greensched.io/hold"]
    cluster.kubectl("annotate", "pod", "bare", "greensched.io/run-now=true", "-n", users)
    ended = "--for=jsonpath={.status.phase}=Succeeded"
    cluster.kubectl("wait", "pod/bare", ended, "--timeout=60s", "-n", users)
    assert cluster.kubectl("logs", "bare", "-n", users).strip() == "trained"


def test_a_run_of_a_cronjob_is_held_as_the_cronjob_says(
    cluster: ClusterAccess, users: str, shell: str
) -> None:
    template = pod_template(shell, "echo trained")
    nightly = cron_job("nightly", "0 0 1 1 *", template, deadline="6h", runtime="10m")
    cluster.apply(nightly, namespace=users)
    cluster.kubectl("create", "job", "run", "--from=cronjob/nightly", "-n", users)
    cluster.wait_until(lambda: PLANNED in cluster.said("job", "run", users), "it is planned")
    assert cluster.is_held("run", users)
    cluster.kubectl("annotate", "job", "run", "greensched.io/run-now=true", "-n", users)
    assert has_run(cluster, users, "run")


@pytest.fixture
def restricted(cluster: ClusterAccess, users: str) -> str:
    """A namespace that takes only pods of the strictest Pod Security Standard."""
    enforce = "pod-security.kubernetes.io/enforce=restricted"
    cluster.kubectl("label", "namespace", users, enforce)
    return users


def test_held_work_runs_in_a_namespace_of_the_strictest_pod_security(
    cluster: ClusterAccess, restricted: str, shell: str
) -> None:
    hold(cluster, shell, restricted)
    cluster.kubectl("annotate", "job", "train", "greensched.io/run-now=true", "-n", restricted)
    assert has_run(cluster, restricted)


def test_work_that_does_not_opt_in_is_not_touched(
    cluster: ClusterAccess, users: str, shell: str
) -> None:
    template = pod_template(shell, "echo trained", scheduler="default-scheduler")
    cluster.apply(job("other", template), namespace=users)
    assert has_run(cluster, users, "other")
    assert cluster.said("job", "other", users) == {}
