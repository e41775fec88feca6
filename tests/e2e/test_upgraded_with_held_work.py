"""From the last release to this one, as docs/install.md says, with work that is held.

It runs after `test_uninstalled_last.py`: the last release is installed where nothing is left.
"""

import json
import uuid
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from greensched_testbed.end_to_end.clusters import ClusterAccess
from greensched_testbed.end_to_end.last_release import LastRelease
from greensched_testbed.end_to_end.release import (
    NAMESPACE,
    ChartRelease,
    install,
    uninstall,
    upgrade,
)
from greensched_testbed.end_to_end.two_grids import publish_grids
from greensched_testbed.end_to_end.work import job, pod, pod_template

CHART = Path(__file__).parents[2] / "deploy/helm/greensched"
WORK = (("job", "train"), ("pod", "bare"))
PLANNED = "planned-start"


@dataclass(frozen=True)
class Upgraded:
    """This checkout's release, and what the one before held in a namespace."""

    release: ChartRelease
    namespace: str


@pytest.fixture(scope="module")
def before(cluster: ClusterAccess, last_release: LastRelease) -> ClusterAccess:
    """The cluster with the last release, whose images it names as those to install."""
    if cluster.can.load_images is None:
        pytest.skip(f"{cluster.can.kind}: no test may give its nodes images of the last release")
    cluster.can.load_images(last_release.archives.values())
    extender, operator = last_release.images
    can = replace(cluster.can, extender_image=extender, operator_image=operator)
    older = replace(cluster, can=can)
    uninstall(cluster)
    # Else work is not held before the Leases of the processes that are gone have run out.
    cluster.kubectl("delete", "leases", "--all", "--namespace", NAMESPACE)
    install(older, last_release.chart)
    publish_grids(cluster)
    return older


@pytest.fixture(scope="module")
def upgraded(cluster: ClusterAccess, before: ClusterAccess) -> Upgraded:
    """What the last release held, and an upgrade while it is held."""
    namespace = f"users-{uuid.uuid4().hex[:6]}"
    cluster.kubectl("create", "namespace", namespace)
    hold(cluster, namespace)
    return Upgraded(upgrade(cluster, CHART), namespace)


def hold(cluster: ClusterAccess, namespace: str) -> None:
    """Create a Job and a bare pod that may wait, and wait until their starts are planned."""
    asks = {"deadline": "6h", "runtime": "10m"}
    said = {f"greensched.io/{key}": text for key, text in asks.items()}
    template = pod_template(cluster.can.shell_image, "echo trained")
    bare = pod_template(cluster.can.shell_image, "echo trained", annotations=said)
    held = job("train", template, **asks)
    tried = ("create", "--dry-run=server", "--output=json", "-n", namespace, "-f", "-")
    cluster.wait_until(
        lambda: "hold-until" in cluster.kubectl(*tried, stdin=json.dumps(held)), "work is held"
    )
    cluster.apply(held, pod("bare", bare), namespace=namespace)

    def are_planned() -> bool:
        return all(PLANNED in cluster.said(kind, name, namespace) for kind, name in WORK)

    cluster.wait_until(are_planned, "both are planned")


def test_all_runs_on_the_new_images_and_definitions(
    cluster: ClusterAccess, upgraded: Upgraded
) -> None:
    named = {
        container["image"]
        for part in ("extender", "controller", "webhook", "releaser")
        for each in upgraded.release.pods(part)
        if "deletionTimestamp" not in each["metadata"]
        for container in each["spec"]["containers"]
    }
    assert named == {cluster.can.extender_image, cluster.can.operator_image}
    definitions = str(CHART / "files/crds")  # it fails where one differs from the API server's
    assert cluster.kubectl("diff", "--server-side", "--force-conflicts", "-f", definitions) == ""


def test_what_was_held_is_held_and_was_never_started(
    cluster: ClusterAccess, upgraded: Upgraded
) -> None:
    space = upgraded.namespace
    assert cluster.is_held("train", space)
    gates = cluster.get("pod", "bare", space)["spec"]["schedulingGates"]
    assert [each["name"] for each in gates] == ["greensched.io/hold"]
    for kind, name in WORK:
        said = cluster.said(kind, name, space)
        assert PLANNED in said and "release-reason" not in said
    reasons = {each["reason"] for each in cluster.list("events", space)}
    assert not reasons & {"SuccessfulCreate", "Resumed", "Scheduled", "Released"}, reasons


def test_what_was_held_before_is_started_by_the_new_operator(
    cluster: ClusterAccess, upgraded: Upgraded
) -> None:
    space = upgraded.namespace
    for kind, name in WORK:
        cluster.kubectl("annotate", kind, name, "greensched.io/run-now=true", "-n", space)
    cluster.wait_until(lambda: cluster.is_complete("train", space), "the Job runs")
    ended = "--for=jsonpath={.status.phase}=Succeeded"
    cluster.kubectl("wait", "pod/bare", ended, "--timeout=60s", "-n", space)
    for kind, name in WORK:
        assert cluster.said(kind, name, space)["release-reason"] == "run-now"
    cluster.kubectl("delete", "namespace", space, "--wait=false")
