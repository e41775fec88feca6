"""Held work stays held when a leader is killed, a node is drained or its power is cut."""

import pytest

from greensched_testbed.end_to_end.clusters import ClusterAccess
from greensched_testbed.end_to_end.release import NAMESPACE, ChartRelease
from greensched_testbed.end_to_end.work import job, pod_template

PLANNED = "planned-start"
DIRTY = "DE"
DRAIN = ("--ignore-daemonsets", "--force", "--delete-emptydir-data", "--timeout=120s")


def test_another_controller_takes_over_when_the_leader_is_killed(
    cluster: ClusterAccess, release: ChartRelease, users: str, shell: str
) -> None:
    leader = lease_holder(cluster)
    cluster.kubectl("delete", "pod", leader, "--force", "--grace-period=0", "-n", NAMESPACE)
    cluster.wait_until(lambda: lease_holder(cluster) not in ("", leader), "another leads")
    held = job("train", pod_template(shell), deadline="6h", runtime="10m")
    cluster.apply(held, namespace=users)
    cluster.wait_until(lambda: PLANNED in cluster.said("job", "train", users), "it is planned")


def lease_holder(cluster: ClusterAccess) -> str:
    """Return the pod that leads."""
    holder: str = cluster.get("lease", "greensched-operator", NAMESPACE)["spec"]["holderIdentity"]
    return holder


def test_held_work_stays_held_while_a_node_is_drained(
    cluster: ClusterAccess, release: ChartRelease, users: str, shell: str, two_zones: dict[str, str]
) -> None:
    held = job("train", pod_template(shell), deadline="6h", runtime="10m")
    cluster.apply(held, namespace=users)
    cluster.wait_until(lambda: PLANNED in cluster.said("job", "train", users), "it is planned")
    planned = cluster.said("job", "train", users)[PLANNED]
    # Without a node in the clean zone nothing would be worth the wait.
    node = next(name for name, zone in two_zones.items() if zone == DIRTY)
    try:
        cluster.kubectl("drain", node, *DRAIN)
        cluster.wait_until(
            lambda: release.is_off(node, "extender", "controller", "webhook", "releaser"),
            "our pods are elsewhere and Ready",
            90.0,
        )
        assert cluster.is_held("train", users), cluster.said("job", "train", users)
        assert cluster.said("job", "train", users)[PLANNED] == planned
    finally:
        cluster.kubectl("uncordon", node)


def test_held_work_stays_held_when_the_power_of_a_node_is_cut(
    cluster: ClusterAccess, release: ChartRelease, users: str, shell: str
) -> None:
    restart = cluster.can.restart_node
    if restart is None:
        pytest.skip(f"{cluster.can.kind}: no test may restart its nodes")
    held = job("train", pod_template(shell), deadline="6h", runtime="10m")
    cluster.apply(held, namespace=users)
    cluster.wait_until(lambda: PLANNED in cluster.said("job", "train", users), "it is planned")
    planned = cluster.said("job", "train", users)[PLANNED]
    restart(release.pods("controller")[0]["spec"]["nodeName"])
    release.wait_until_ready()
    assert cluster.is_held("train", users)
    assert cluster.said("job", "train", users)[PLANNED] == planned
    cluster.kubectl("annotate", "job", "train", "greensched.io/run-now=true", "-n", users)
    cluster.wait_until(lambda: cluster.is_complete("train", users), "it runs")
