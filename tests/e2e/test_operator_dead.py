"""With controller and webhook dead, work runs, whatever becomes of the extender meanwhile.

All tests share one outage, so that the Job that is held through it does not wait for itself alone.
"""

import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from greensched_testbed.end_to_end.clusters import ClusterAccess
from greensched_testbed.end_to_end.release import NAMESPACE, ChartRelease, is_ready
from greensched_testbed.end_to_end.work import job, pod, pod_template

CORDONED = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}
EXTENDER = "deployment/greensched-extender"
# `releaserGraceS` of the tests' release is 2 s; the rest is for a busy machine.
MOST_LATE = timedelta(seconds=15)


@dataclass(frozen=True)
class HeldJob:
    """The Job `late`, held when controller and webhook die."""

    namespace: str
    latest_start: datetime


@pytest.fixture(scope="module", autouse=True)
def late(cluster: ClusterAccess, release: ChartRelease) -> Iterator[HeldJob]:
    """A Job that is held while controller and webhook are dead; both come back afterwards."""
    shell = cluster.can.shell_image
    if not shell:
        pytest.skip(f"{cluster.can.kind} has no image with a shell")
    namespace = f"outage-{uuid.uuid4().hex[:6]}"
    cluster.kubectl("create", "namespace", namespace)
    cluster.apply(quiet_policy(), namespace=namespace)
    # Before that the leader may not know it, and start the Job at once.
    cluster.wait_until(lambda: is_accepted(cluster, namespace), "the leader has read the policy")
    held = job("late", pod_template(shell), max_delay="70s", runtime="1m")
    cluster.apply(held, namespace=namespace)
    cluster.wait_until(
        lambda: "planned-start" in cluster.said("job", "late", namespace), "it is planned"
    )
    assert cluster.is_held("late", namespace)
    latest_start = cluster.said("job", "late", namespace)["latest-start"]
    try:
        release.scale("controller", 0)
        release.scale("webhook", 0)
        yield HeldJob(namespace, datetime.fromisoformat(latest_start))
    finally:
        release.scale("webhook", 2)
        release.scale("controller", 2)
        cluster.kubectl("delete", "namespace", namespace, "--wait=false")


def is_accepted(cluster: ClusterAccess, namespace: str) -> bool:
    """Return whether the leader follows the namespace's GreenPolicy."""
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


def is_placed(cluster: ClusterAccess, name: str, namespace: str) -> bool:
    """Return whether a pod has a node."""
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
    service = ("service", "greensched-extender", "--namespace", NAMESPACE)
    manifest = cluster.kubectl("get", *service, "--output", "json")
    cluster.kubectl("delete", *service)
    # A connection that is open needs no name.
    cluster.kubectl("rollout", "restart", EXTENDER, "-n", NAMESPACE)
    release.wait_until_ready()
    cluster.wait_until(lambda: len(release.pods("extender")) == 2, "the old ones have ended")
    yield
    cluster.kubectl("apply", "-f", "-", stdin=manifest)


def test_new_work_runs_unheld(cluster: ClusterAccess, users: str, shell: str) -> None:
    cluster.apply(job("new", pod_template(shell), deadline="6h"), namespace=users)
    cluster.wait_until(lambda: cluster.is_complete("new", users), "new work runs unheld")


@pytest.mark.usefixtures("no_service_of_the_extender")
def test_pods_are_placed_without_scores_when_the_extenders_name_is_gone(
    cluster: ClusterAccess,
    release: ChartRelease,
    users: str,
    shell: str,
    greensched: Callable[..., str],
) -> None:
    scored, unscored = release.scored(), release.unscored()
    assert seconds_to_place(cluster, shell, users, "unscored") < 10.0
    cluster.wait_until(lambda: release.unscored() > unscored, "the extenders have counted it")
    assert release.scored() == scored
    explained = greensched("explain", "unscored", "--namespace", users, status=1)
    assert "placed without scores" in explained


def test_pods_are_placed_when_every_extender_is_killed(
    cluster: ClusterAccess, release: ChartRelease, users: str, shell: str
) -> None:
    names = [each["metadata"]["name"] for each in release.pods("extender")]
    cluster.kubectl("delete", "pod", *names, "--force", "--grace-period=0", "-n", NAMESPACE)
    assert seconds_to_place(cluster, shell, users, "orphan") < 10.0
    cluster.kubectl("rollout", "status", EXTENDER, "--timeout=60s", "-n", NAMESPACE)


def test_pods_are_placed_while_the_extender_is_rolled(
    cluster: ClusterAccess, users: str, shell: str
) -> None:
    cluster.kubectl("rollout", "restart", EXTENDER, "-n", NAMESPACE)
    for index in range(5):
        assert seconds_to_place(cluster, shell, users, f"during-{index}") < 10.0
    cluster.kubectl("rollout", "status", EXTENDER, "--timeout=90s", "-n", NAMESPACE)


def test_pods_are_placed_while_an_extender_is_drained(
    cluster: ClusterAccess, release: ChartRelease, users: str, shell: str
) -> None:
    release.scale("extender", 2)  # none of before is still ending
    node = release.pods("extender")[0]["spec"]["nodeName"]
    # Not the scheduler beside it: without the only one nothing is placed, with or without scores.
    selector = "app.kubernetes.io/name=greensched,app.kubernetes.io/component=extender"
    drain = ("drain", node, "--pod-selector", selector, "--delete-emptydir-data", "--timeout=120s")
    # Of two nodes the other alone would be feasible, and no score asked.
    tolerations = [CORDONED]
    try:
        with ThreadPoolExecutor() as pool:
            draining = pool.submit(cluster.kubectl, *drain)
            for index in range(5):
                name = f"during-{index}"
                took_s = seconds_to_place(cluster, shell, users, name, tolerations=tolerations)
                assert took_s < 10.0
            draining.result()
        cluster.wait_until(
            lambda: release.is_off(node, "extender"), "extenders are elsewhere and Ready", 90.0
        )
        assert seconds_to_place(cluster, shell, users, "after", tolerations=tolerations) < 10.0
    finally:
        cluster.kubectl("uncordon", node)


def test_a_new_version_whose_image_cannot_be_pulled_leaves_the_old_one_answering(
    cluster: ClusterAccess, release: ChartRelease, users: str, shell: str
) -> None:
    old = {each["metadata"]["name"] for each in release.pods("extender")}
    image = "*=localhost/greensched-no-such-image:1"
    cluster.kubectl("set", "image", EXTENDER, image, "-n", NAMESPACE)
    cluster.wait_until(lambda: is_waiting_for_image(release), "the image is missed")
    ready = {each["metadata"]["name"] for each in release.pods("extender") if is_ready(each)}
    assert ready & old
    assert seconds_to_place(cluster, shell, users, "meanwhile") < 10.0
    cluster.kubectl("rollout", "undo", EXTENDER, "-n", NAMESPACE)
    cluster.kubectl("rollout", "status", EXTENDER, "--timeout=90s", "-n", NAMESPACE)


def is_waiting_for_image(release: ChartRelease) -> bool:
    """Return whether a pod of the extender has been refused its image."""
    statuses = [
        each.get("state", {}).get("waiting", {}).get("reason", "")
        for one in release.pods("extender")
        for each in one["status"].get("containerStatuses", ())
    ]
    return bool({"ErrImagePull", "ImagePullBackOff"} & set(statuses))


def test_held_work_starts_at_its_latest_start(cluster: ClusterAccess, late: HeldJob) -> None:
    cluster.wait_until(
        lambda: cluster.is_complete("late", late.namespace), "the releaser has started it", 120.0
    )
    found = cluster.get("job", "late", late.namespace)
    started = datetime.fromisoformat(found["status"]["startTime"])
    assert timedelta(0) <= started - late.latest_start <= MOST_LATE
    assert cluster.said("job", "late", late.namespace)["release-reason"] == "releaser"
