"""Pods that opted in land where power is clean; with two nodes, since one is never scored."""

from collections.abc import Callable

from greensched_testbed.end_to_end.clusters import ClusterAccess
from greensched_testbed.end_to_end.release import ChartRelease
from greensched_testbed.end_to_end.work import pod, pod_template

CLEAN = "SE-SE3"


def node_of(cluster: ClusterAccess, name: str, namespace: str) -> str:
    """Return the node of a pod, "" while it has none."""
    node: str = cluster.get("pod", name, namespace)["spec"].get("nodeName", "")
    return node


def place(cluster: ClusterAccess, shell: str, namespace: str, count: int = 4) -> list[str]:
    """Create pods that sleep and return the nodes that they got."""
    names = [f"pod-{index}" for index in range(count)]
    template = pod_template(shell, "sleep 300 & wait")
    cluster.apply(*(pod(name, template) for name in names), namespace=namespace)
    cluster.wait_until(
        lambda: all(node_of(cluster, name, namespace) for name in names), "all are placed"
    )
    return [node_of(cluster, name, namespace) for name in names]


def test_pods_go_to_the_cleaner_node(
    cluster: ClusterAccess,
    release: ChartRelease,
    two_zones: dict[str, str],
    users: str,
    shell: str,
    greensched: Callable[..., str],
) -> None:
    before = release.scored()
    placed = place(cluster, shell, users)
    assert {two_zones[node] for node in placed} == {CLEAN}
    assert release.scored() == before + len(placed)
    for number in range(len(placed)):
        assert CLEAN in greensched("explain", f"pod-{number}", "--namespace", users)
    ready = ("wait", "pod", "--all", "--for=condition=Ready", "--timeout=60s")
    cluster.kubectl(*ready, "--namespace", users)


def test_a_pod_that_did_not_opt_in_is_placed_by_the_clusters_own_scheduler(
    cluster: ClusterAccess, users: str, shell: str
) -> None:
    template = pod_template(shell, "true", scheduler="default-scheduler")
    cluster.apply(pod("other", template), namespace=users)
    cluster.wait_until(lambda: bool(node_of(cluster, "other", users)), "it is placed")
    told = ("get", "events", "--namespace", users, "--field-selector", "reason=Scheduled")
    assert "default-scheduler" in cluster.kubectl(*told, "--output", "json")
