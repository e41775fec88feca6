"""The chart's NetworkPolicies where the network enforces such: who is kept out, and who is not."""

import uuid
from collections.abc import Iterator

import pytest

from greensched_testbed.end_to_end.clusters import ClusterAccess
from greensched_testbed.end_to_end.release import NAMESPACE, ChartRelease
from greensched_testbed.end_to_end.work import job, pod, pod_template
from greensched_testbed.errors import CommandFailed, NotReady

SERVES = "mkdir -p /tmp/www && echo well > /tmp/www/healthz && exec httpd -f -p 8080 -h /tmp/www"
SOON_S = 5.0  # by then a network that knows policies has heard of one
CONNECTS = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 3)"


def address(cluster: ClusterAccess, name: str, namespace: str) -> str:
    """Return a pod's address."""
    found: str = cluster.get("pod", name, namespace)["status"]["podIP"]
    return found


def reaches(cluster: ClusterAccess, namespace: str, host: str, path: str) -> bool:
    """Say whether a pod of the users gets an answer to HTTP within three seconds."""
    asked = ("timeout", "3", "wget", "-qO-", f"http://{host}{path}")
    try:
        cluster.kubectl("exec", "stranger", "-n", namespace, "--", *asked)
    except CommandFailed:
        return False
    return True


@pytest.fixture(scope="module")
def stranger(cluster: ClusterAccess, release: ChartRelease) -> Iterator[str]:
    """A namespace of two pods of users: one that serves, and one that asks."""
    image = cluster.can.shell_image
    if not image:
        pytest.skip(f"{cluster.can.kind} has no image with a shell")
    name = f"strangers-{uuid.uuid4().hex[:6]}"
    cluster.kubectl("create", "namespace", name)
    server = pod("server", pod_template(image, SERVES))
    server["metadata"]["labels"] = {"app": "server"}
    stranger = pod("stranger", pod_template(image, "sleep 300 & wait"))
    cluster.apply(server, stranger, namespace=name)
    cluster.kubectl("wait", "pod", "--all", "--for=condition=Ready", "--timeout=60s", "-n", name)
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="module")
def enforced(cluster: ClusterAccess, stranger: str) -> str:
    """The same, in a cluster whose network keeps out whom a NetworkPolicy keeps out."""
    server = f"{address(cluster, 'server', stranger)}:8080"
    cluster.wait_until(lambda: reaches(cluster, stranger, server, "/healthz"), "it serves")
    closed = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "closed"},
        "spec": {"podSelector": {"matchLabels": {"app": "server"}}, "policyTypes": ["Ingress"]},
    }
    cluster.apply(closed, namespace=stranger)
    try:
        shut = "it is shut"
        cluster.wait_until(lambda: not reaches(cluster, stranger, server, "/healthz"), shut, SOON_S)
    except NotReady:
        pytest.skip(f"{cluster.can.kind}: its network enforces no NetworkPolicy")
    cluster.kubectl("delete", "networkpolicy", "closed", "-n", stranger)
    return stranger


@pytest.fixture
def limited(cluster: ClusterAccess, release: ChartRelease, enforced: str) -> Iterator[str]:
    """The same, with all pods of the release limited both ways."""
    slices = cluster.list("endpointslices", "default", "kubernetes.io/service-name=kubernetes")
    ports = {str(port["port"]) for each in slices for port in each["ports"]}
    release.upgrade(
        "networkPolicy.enabled=true",
        f"networkPolicy.apiServerPorts={{{','.join({*ports, '443'})}}}",
    )
    yield enforced
    release.upgrade()


def test_only_the_scheduler_reaches_the_extender(
    cluster: ClusterAccess, release: ChartRelease, enforced: str, shell: str
) -> None:
    before = release.scored()
    for each in release.pods("extender"):  # Ready: the kubelet's probes pass
        assert not reaches(cluster, enforced, f"{each['status']['podIP']}:8888", "/readyz")
    cluster.apply(pod("placed", pod_template(shell)), namespace=enforced)
    ended = "--for=jsonpath={.status.phase}=Succeeded"
    cluster.kubectl("wait", "pod/placed", ended, "--timeout=60s", "-n", enforced)
    assert release.scored() == before + 1


def test_limited_both_ways_all_of_it_works_and_reaches_nobody_else(
    cluster: ClusterAccess, release: ChartRelease, limited: str, shell: str
) -> None:
    cluster.apply(job("train", pod_template(shell), deadline="6h"), namespace=limited)
    assert cluster.is_held("train", limited)
    cluster.kubectl("annotate", "job", "train", "greensched.io/run-now=true", "-n", limited)
    cluster.wait_until(lambda: cluster.is_complete("train", limited), "it runs")
    server = address(cluster, "server", limited)
    for component in ("extender", "controller", "webhook", "releaser"):
        name = release.pods(component)[0]["metadata"]["name"]
        asked = ("python", "-c", CONNECTS, server, "8080")
        with pytest.raises(CommandFailed, match="TimeoutError|timed out|refused|unreachable"):
            cluster.kubectl("exec", name, "-n", NAMESPACE, "--", *asked)
