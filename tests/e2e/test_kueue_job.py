"""A Job that Kueue queues: it waits by our AdmissionCheck, as docs/kueue.md says, and then runs."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest

from greensched_testbed.end_to_end.clusters import ClusterAccess
from greensched_testbed.end_to_end.release import ChartRelease
from greensched_testbed.end_to_end.work import job, pod_template
from greensched_testbed.kueue import VERSION

API = f"kueue.x-k8s.io/{VERSION}"
NAME = "greensched-e2e"  # of whatever of Kueue's is not in a namespace
CHECKED = "--for=jsonpath={.status.admissionChecks[0].state}="


@pytest.fixture
def kueue(cluster: ClusterAccess, release: ChartRelease) -> Iterator[None]:
    """Kueue's controller, the cluster's own or one that starts while our operator is upgraded."""
    if cluster.can.run_kueue is None and API not in cluster.kubectl("api-versions").split():
        pytest.skip(f"{cluster.can.kind} has no Kueue that serves {API}")
    with ExitStack() as running:
        with ThreadPoolExecutor(1) as beside:
            upgrading = beside.submit(release.upgrade, "operator.kueue.enabled=true")
            if cluster.can.run_kueue is not None:
                running.enter_context(cluster.can.run_kueue())
            upgrading.result()
        yield


def of_kueue(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    """Return an object of Kueue's API."""
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def queue(cluster: ClusterAccess, kueue: None, users: str) -> Iterator[str]:
    """A LocalQueue of the users whose ClusterQueue names our check."""
    quotas = [{"name": "cpu", "nominalQuota": "1"}, {"name": "memory", "nominalQuota": "1Gi"}]
    flavors = [{"name": NAME, "resources": quotas}]
    covered = [each["name"] for each in quotas]
    shared = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": users}},
        "resourceGroups": [{"coveredResources": covered, "flavors": flavors}],
        "admissionChecksStrategy": {"admissionChecks": [{"name": NAME}]},
    }
    cluster.apply(
        of_kueue("ResourceFlavor", NAME, {}),
        of_kueue("AdmissionCheck", NAME, {"controllerName": "greensched.io/hold"}),
        of_kueue("ClusterQueue", NAME, shared),
        of_kueue("LocalQueue", "team", {"clusterQueue": NAME}),
        namespace=users,
    )
    yield "team"
    cluster.kubectl("delete", "jobs,localqueues", "--all", "-n", users)
    for kind in ("clusterqueue", "admissioncheck", "resourceflavor"):
        cluster.kubectl("delete", kind, NAME)


def test_a_queued_job_waits_by_our_check_and_then_runs_on_a_node(
    cluster: ClusterAccess, users: str, shell: str, queue: str
) -> None:
    template = pod_template(shell, "echo trained")
    body = job("train", template, deadline="6h", runtime="10m")
    body["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": queue}
    body["spec"]["suspend"] = True  # as Kueue's webhook would
    cluster.apply(body, namespace=users)
    cluster.wait_until(
        lambda: "start planned for" in told(cluster, users), "our check says until when"
    )
    assert cluster.get("job", "train", users)["spec"]["suspend"] is True
    cluster.kubectl("wait", "workloads", "--all", f"{CHECKED}Pending", "--timeout=5s", "-n", users)
    cluster.kubectl("annotate", "job", "train", "greensched.io/run-now=true", "-n", users)
    cluster.wait_until(lambda: cluster.is_complete("train", users), "it has run")
    cluster.kubectl("wait", "workloads", "--all", f"{CHECKED}Ready", "--timeout=5s", "-n", users)
    assert "trained" in cluster.kubectl("logs", "job/train", "--namespace", users)


def told(cluster: ClusterAccess, namespace: str) -> str:
    """Return what our check says of the namespace's only Workload."""
    states = [
        each
        for one in cluster.list("workloads", namespace)
        for each in one.get("status", {}).get("admissionChecks", ())
    ]
    return states[0].get("message", "") if states else ""
