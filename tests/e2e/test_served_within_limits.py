"""What kubelets measure of our containers, after all that the tests before did to them."""

import json
import re
from collections.abc import Callable

import pytest

from greensched_core.quantities import parse_quantity
from greensched_testbed.end_to_end.clusters import Cluster
from greensched_testbed.end_to_end.release import DEPLOYMENTS, NAMESPACE, Release

MOST_OF_A_LIMIT = 0.5
_WORKING_SET = re.compile(
    r'^container_memory_working_set_bytes\{container="(?P<container>[^"]+)".*'
    r'namespace="greensched",pod="(?P<pod>[^"]+)"\} (?P<bytes>\S+)',
    re.MULTILINE,
)


def working_sets(cluster: Cluster) -> dict[str, float]:
    """Return the bytes that each pod's container of ours has in use, from cAdvisor."""
    nodes = json.loads(cluster.kubectl("get", "nodes", "--output", "json"))["items"]
    found = {}
    for node in nodes:
        path = f"/api/v1/nodes/{node['metadata']['name']}/proxy/metrics/cadvisor"
        for each in _WORKING_SET.finditer(cluster.kubectl("get", "--raw", path)):
            found[each["pod"]] = float(each["bytes"])
    return found


def test_no_container_takes_half_of_its_memory_limit(
    cluster: Cluster, release: Release, told: Callable[[str, str], None]
) -> None:
    if not cluster.can.kubelet_metrics:
        pytest.skip(f"{cluster.can.kind}: no test may ask its kubelets")
    pods = {each["metadata"]["name"]: each for part in DEPLOYMENTS for each in release.pods(part)}
    cluster.wait_until(lambda: set(pods) <= set(working_sets(cluster)), "all are measured")
    shares = {}
    for name, taken_bytes in working_sets(cluster).items():
        if name in pods:
            limits = pods[name]["spec"]["containers"][0]["resources"].get("limits", {})
            if "memory" in limits:
                shares[name] = taken_bytes / parse_quantity(limits["memory"])
    assert shares, f"no container of {NAMESPACE} has a limit"
    worst = max(shares, key=lambda name: shares[name])
    told("worst memory share", f"{shares[worst]:.2f} ({worst})")
    assert shares[worst] <= MOST_OF_A_LIMIT
