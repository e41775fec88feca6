"""What kubelets measure of our containers, by now and under load."""

import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from greensched_testbed.end_to_end.clusters import ClusterAccess
from greensched_testbed.end_to_end.container_use import ContainerUse
from greensched_testbed.end_to_end.release import ChartRelease
from greensched_testbed.end_to_end.work import job, pod, pod_template

MOST_OF_A_LIMIT = 0.5
JOBS, PODS = 100, 50
# On a machine that is busy otherwise a few calls are late; then pods are placed unscored, and Jobs
# start at once.
NEARLY_ALL = 0.9


def test_memory_at_rest_is_measured_and_below_half_of_its_limit(
    release: ChartRelease, use: ContainerUse, figures: dict[str, float | str]
) -> None:
    """Before the load of the test below; the readings are 25 s old at most, and none is awaited."""
    pods = release.restarts().keys()
    release.cluster.wait_until(lambda: use.has_seen_since(0.0, pods), "all have been measured")
    at_rest = use.shares_now(pods)
    figures |= {f"memory_rest_share_{name}": share for name, share in at_rest.items()}
    assert {name: share for name, share in at_rest.items() if share > MOST_OF_A_LIMIT} == {}


def test_no_container_took_half_of_its_memory_limit_nor_was_restarted_under_load(
    cluster: ClusterAccess, release: ChartRelease, use: ContainerUse, users: str, shell: str
) -> None:
    restarts, scored = release.restarts(), release.scored()
    pods = [pod(f"pod-{n}", template(shell)) for n in range(PODS)]
    asks = {"deadline": "6h", "runtime": "10m"}
    jobs = [job(f"job-{n}", template(shell), **asks) for n in range(JOBS)]
    with ThreadPoolExecutor(2) as at_once:
        list(at_once.map(lambda bodies: create(cluster, users, bodies), (pods, jobs)))
    cluster.wait_until(lambda: placed(cluster, users) >= PODS, "all pods are placed")
    assert release.scored() - scored >= NEARLY_ALL * PODS
    held = [each for each in annotations(cluster, users) if "greensched.io/latest-start" in each]
    assert len(held) >= NEARLY_ALL * JOBS
    loaded_s, names = time.time(), release.restarts().keys()
    cluster.wait_until(lambda: planned(cluster, users) >= len(held), "all have their plan")
    cluster.wait_until(lambda: use.has_seen_since(loaded_s, names), "all are measured since")
    assert {name: part for name, part in use.shares().items() if part > MOST_OF_A_LIMIT} == {}
    assert release.restarts() == restarts
    assert release.killed_for_memory() == []


def template(image: str) -> dict[str, Any]:
    """Return what asks for little, since a policy holds only a share of the cluster's cores.

    Where it is started it waits for a volume: the load is ours, not the nodes'.
    """
    made = pod_template(image)
    made["spec"]["volumes"] = [{"name": "absent", "configMap": {"name": "absent"}}]
    made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1m", "memory": "1Mi"}}
    return made


def create(cluster: ClusterAccess, namespace: str, objects: Sequence[dict[str, Any]]) -> None:
    """Create objects as fast as kubectl does."""
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    cluster.kubectl("create", "--namespace", namespace, "-f", "-", stdin=listed)


def placed(cluster: ClusterAccess, namespace: str) -> int:
    """Return how many of the pods have a node."""
    found = cluster.list("pods", namespace)
    named = [each for each in found if each["metadata"]["name"].startswith("pod-")]
    return sum("nodeName" in each["spec"] for each in named)


def planned(cluster: ClusterAccess, namespace: str) -> int:
    """Return how many of the Jobs know their start."""
    return sum("greensched.io/planned-start" in each for each in annotations(cluster, namespace))


def annotations(cluster: ClusterAccess, namespace: str) -> list[dict[str, str]]:
    """Return what each Job says."""
    return [each["metadata"].get("annotations", {}) for each in cluster.list("jobs", namespace)]
