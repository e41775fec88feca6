"""Parts of ours that are gone delay no pod and keep no work."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from greensched_testbed.end_to_end.clusters import ClusterAccess
from greensched_testbed.end_to_end.release import NAMESPACE, ChartRelease
from greensched_testbed.end_to_end.work import job, pod, pod_template

PLANNED = "planned-start"
DIRTY = "DE"
EVEN_CORDONED = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}
MORE = ("--delete-emptydir-data", "--timeout=120s")  # ours hold nothing that matters


def is_placed(cluster: ClusterAccess, name: str, namespace: str) -> bool:
    """Say whether a pod has a node."""
    return bool(cluster.get("pod", name, namespace)["spec"].get("nodeName"))


def seconds_to_place(
    cluster: ClusterAccess, shell: str, users: str, name: str, **spec: list[dict[str, str]]
) -> float:
    """Create a pod that opts in and return how long it had no node; `spec` is added to its own."""
    template = pod_template(shell)
    template["spec"] |= spec
    began = time.monotonic()
    cluster.apply(pod(name, template), namespace=users)
    cluster.wait_until(lambda: is_placed(cluster, name, users), f"{name} is placed", 20.0)
    return time.monotonic() - began


@pytest.fixture
def no_service_of_the_extender(cluster: ClusterAccess, release: ChartRelease) -> Iterator[None]:
    """The extender's Service is gone, and with it its name in the cluster's DNS."""
    told = ("service", "greensched-extender", "--namespace", NAMESPACE)
    kept = cluster.kubectl("get", *told, "--output", "json")
    cluster.kubectl("delete", *told)
    # A connection that is open needs no name.
    cluster.kubectl("rollout", "restart", "deployment/greensched-extender", "-n", NAMESPACE)
    release.wait_until_ready()
    cluster.wait_until(lambda: len(release.pods("extender")) == 2, "the old ones have ended")
    yield
    cluster.kubectl("apply", "-f", "-", stdin=kept)


@pytest.mark.usefixtures("no_service_of_the_extender")
def test_pods_are_placed_without_scores_when_the_extenders_name_is_gone(
    cluster: ClusterAccess,
    release: ChartRelease,
    users: str,
    shell: str,
    greensched: Callable[..., str],
) -> None:
    before = release.scored()
    assert seconds_to_place(cluster, shell, users, "unscored") < 10.0
    assert release.scored() == before
    told = greensched("explain", "unscored", "--namespace", users, status=1)
    assert "placed without scores" in told


def test_pods_are_placed_when_every_extender_is_killed(
    cluster: ClusterAccess, release: ChartRelease, users: str, shell: str
) -> None:
    names = [each["metadata"]["name"] for each in release.pods("extender")]
    cluster.kubectl("delete", "pod", *names, "--force", "--grace-period=0", "-n", NAMESPACE)
    assert seconds_to_place(cluster, shell, users, "orphan") < 10.0
    deployment = "deployment/greensched-extender"
    cluster.kubectl("rollout", "status", deployment, "--timeout=60s", "-n", NAMESPACE)


def test_pods_are_placed_while_the_extender_is_rolled(
    cluster: ClusterAccess, release: ChartRelease, users: str, shell: str
) -> None:
    deployment = "deployment/greensched-extender"
    cluster.kubectl("rollout", "restart", deployment, "-n", NAMESPACE)
    for index in range(5):
        assert seconds_to_place(cluster, shell, users, f"during-{index}") < 10.0
    cluster.kubectl("rollout", "status", deployment, "--timeout=90s", "-n", NAMESPACE)


def test_pods_are_placed_while_an_extender_is_drained(
    cluster: ClusterAccess, release: ChartRelease, users: str, shell: str
) -> None:
    release.scale("extender", 2)  # none of before is still ending
    node = release.pods("extender")[0]["spec"]["nodeName"]
    # Not the scheduler beside it: without the only one nothing is placed, whoever gives scores.
    selector = "app.kubernetes.io/name=greensched,app.kubernetes.io/component=extender"
    told = ("drain", node, "--pod-selector", selector, *MORE)
    # Of two nodes the other alone would be feasible, and no score asked.
    tolerations = [EVEN_CORDONED]
    try:
        with ThreadPoolExecutor() as beside:
            draining = beside.submit(cluster.kubectl, *told)
            for index in range(5):
                name = f"during-{index}"
                took_s = seconds_to_place(cluster, shell, users, name, tolerations=tolerations)
                assert took_s < 10.0
            draining.result()
        cluster.wait_until(
            lambda: is_off(release, node, "extender"), "extenders are elsewhere and Ready", 90.0
        )
        assert seconds_to_place(cluster, shell, users, "after", tolerations=tolerations) < 10.0
    finally:
        cluster.kubectl("uncordon", node)


def test_a_new_version_whose_image_cannot_be_pulled_leaves_the_old_one_answering(
    cluster: ClusterAccess, release: ChartRelease, users: str, shell: str
) -> None:
    deployment = "deployment/greensched-extender"
    old = {each["metadata"]["name"] for each in release.pods("extender")}
    image = "*=localhost/greensched-no-such-image:1"
    cluster.kubectl("set", "image", deployment, image, "-n", NAMESPACE)
    cluster.wait_until(lambda: is_waiting_for_image(release), "the image is missed")
    ready = {each["metadata"]["name"] for each in release.pods("extender") if is_ready(each)}
    assert ready & old
    assert seconds_to_place(cluster, shell, users, "meanwhile") < 10.0
    cluster.kubectl("rollout", "undo", deployment, "-n", NAMESPACE)
    cluster.kubectl("rollout", "status", deployment, "--timeout=90s", "-n", NAMESPACE)


def is_waiting_for_image(release: ChartRelease) -> bool:
    """Say whether a pod of the extender has been refused its image."""
    statuses = [
        each.get("state", {}).get("waiting", {}).get("reason", "")
        for one in release.pods("extender")
        for each in one["status"].get("containerStatuses", ())
    ]
    return bool({"ErrImagePull", "ImagePullBackOff"} & set(statuses))


def is_ready(one: dict[str, dict[str, list[dict[str, str]]]]) -> bool:
    """Say whether a pod is Ready."""
    conditions = one["status"].get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


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


def test_held_work_starts_at_its_latest_start_with_controller_and_webhook_dead(
    cluster: ClusterAccess, release: ChartRelease, users: str, shell: str
) -> None:
    cluster.apply(quiet_policy(), namespace=users)
    # Before that the leader may not know it, and start the Job at once.
    cluster.wait_until(lambda: is_accepted(cluster, users), "the leader has read the policy")
    late = job("late", pod_template(shell), max_delay="70s", runtime="1m")
    cluster.apply(late, namespace=users)
    cluster.wait_until(lambda: PLANNED in cluster.said("job", "late", users), "it is planned")
    assert cluster.is_held("late", users)
    try:
        release.scale("controller", 0)
        release.scale("webhook", 0)
        cluster.apply(job("new", pod_template(shell), deadline="6h"), namespace=users)
        cluster.wait_until(lambda: cluster.is_complete("new", users), "new work runs unheld")
        cluster.wait_until(lambda: cluster.is_complete("late", users), "the releaser", 120.0)
    finally:
        release.scale("webhook", 2)
        release.scale("controller", 2)
    assert cluster.said("job", "late", users)["release-reason"] == "releaser"


def is_accepted(cluster: ClusterAccess, namespace: str) -> bool:
    """Say whether the leader follows the namespace's GreenPolicy."""
    conditions = cluster.get("greenpolicy", "default", namespace).get("status", {})
    return any(
        each["type"] == "Accepted" and each["status"] == "True"
        for each in conditions.get("conditions", ())
    )


def quiet_policy() -> dict[str, Any]:
    """Return a GreenPolicy in whose hours, which are now, only what cannot wait is started."""
    now = datetime.now(UTC)
    hours = {"from": f"{now - timedelta(hours=2):%H:00}", "to": f"{now + timedelta(hours=2):%H:00}"}
    return {
        "apiVersion": "greensched.io/v1alpha1",
        "kind": "GreenPolicy",
        "metadata": {"name": "default"},
        "spec": {"mode": "enforce", "quietHours": [{**hours, "timeZone": "UTC"}]},
    }


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
        cluster.kubectl("drain", node, "--ignore-daemonsets", "--force", *MORE)
        cluster.wait_until(
            lambda: is_off(release, node, "extender", "controller", "webhook", "releaser"),
            "our pods are elsewhere and Ready",
            90.0,
        )
        assert cluster.is_held("train", users), cluster.said("job", "train", users)
        assert cluster.said("job", "train", users)[PLANNED] == planned
    finally:
        cluster.kubectl("uncordon", node)


def is_off(release: ChartRelease, node: str, *parts: str) -> bool:
    """Say whether all pods of parts of ours are Ready on other nodes."""
    pods = [each for part in parts for each in release.pods(part)]
    return all(is_ready(each) and each["spec"]["nodeName"] != node for each in pods)


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
