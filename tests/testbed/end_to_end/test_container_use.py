"""What a kubelet's cAdvisor says of containers, read for one namespace."""

from pathlib import Path

import pytest

from greensched_testbed.end_to_end.clusters import Capabilities, ClusterAccess
from greensched_testbed.end_to_end.container_use import (
    ContainerReading,
    ContainerUse,
    container_limits,
    read_cadvisor,
    with_limit,
)

# Lines of a real kubelet 1.36 with containerd (`/metrics/cadvisor`), shortened.
BODY = """# TYPE container_memory_working_set_bytes gauge
container_memory_working_set_bytes{container="",id="/",image="",name="",namespace="",pod=""} 1.2e+09 1795464611000
container_memory_working_set_bytes{container="",id="/pod1",image="",name="",namespace="greensched",pod="webhook-1"} 9.1e+07 1795464611000
container_memory_working_set_bytes{container="webhook",id="/pod1/c",image="i",name="n",namespace="greensched",pod="webhook-1"} 9e+07 1795464611000
container_memory_working_set_bytes{container="scheduler",id="/pod2/c",image="i",name="n",namespace="greensched",pod="scheduler-1"} 4e+07 1795464611000
container_memory_working_set_bytes{container="main",id="/pod3/c",image="i",name="n",namespace="users",pod="train"} 5e+07 1795464611000
# TYPE container_spec_memory_limit_bytes gauge
container_spec_memory_limit_bytes{container="webhook",id="/pod1/c",image="i",name="n",namespace="greensched",pod="webhook-1"} 2.68435456e+08
container_spec_memory_limit_bytes{container="scheduler",id="/pod2/c",image="i",name="n",namespace="greensched",pod="scheduler-1"} 0
# TYPE container_cpu_cfs_throttled_seconds_total counter
container_cpu_cfs_throttled_seconds_total{container="webhook",id="/pod1/c",image="i",name="n",namespace="greensched",pod="webhook-1"} 1.5 1795464611000
"""  # noqa: E501  # as the kubelet writes it


def test_containers_of_a_namespace_are_read_without_their_pods_and_machines() -> None:
    assert sorted(read_cadvisor(BODY, "greensched"), key=lambda one: one.container) == [
        ContainerReading("scheduler-1", "scheduler", 4e7, 0.0, 0.0, 1795464611.0),
        ContainerReading("webhook-1", "webhook", 9e7, 268435456.0, 1.5, 1795464611.0),
    ]


@pytest.mark.parametrize("body", ["", "# nothing yet\n"])
def test_a_kubelet_that_has_not_looked_yet_says_nothing(body: str) -> None:
    assert list(read_cadvisor(body, "greensched")) == []


PODS = {
    "items": [
        {
            "metadata": {"name": "check"},
            "spec": {
                "containers": [
                    {"name": "check", "resources": {"limits": {"memory": "64Mi"}}},
                    {"name": "unlimited", "resources": {}},
                ]
            },
        }
    ]
}


def test_a_container_that_is_just_starting_has_the_limit_of_its_pod() -> None:
    starting = ContainerReading("check", "check", 1000.0, 0.0, 0.0, 1.0)
    assert with_limit(starting, container_limits(PODS)).limit_bytes == 64 * 2**20


def test_what_cadvisor_says_of_a_limit_comes_first() -> None:
    running = ContainerReading("check", "check", 1000.0, 5000.0, 0.0, 1.0)
    assert with_limit(running, container_limits(PODS)) is running


def test_a_container_without_a_limit_has_none() -> None:
    unlimited = ContainerReading("check", "unlimited", 1000.0, 0.0, 0.0, 1.0)
    assert with_limit(unlimited, container_limits(PODS)).limit_bytes == 0.0


KUBECTL = """#!/bin/sh
case "$*" in
*nodes*--output*) echo '{"items": [{"metadata": {"name": "node-1"}}]}' ;;
*pods*) echo '{"items": []}' ;;
*) cat "$HOME/cadvisor" ;;
esac
"""


def test_what_is_taken_now_is_kept_beside_the_most(tmp_path: Path) -> None:
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(KUBECTL)
    kubectl.chmod(0o755)
    can = Capabilities("a kubelet that is played")
    use = ContainerUse(ClusterAccess(tmp_path, kubectl, kubectl, tmp_path, can), "greensched")
    for used, taken_at_ms in (("1.34217728e+08", 1795464611000), ("6.7108864e+07", 1795464631000)):
        body = BODY.replace("9e+07 1795464611000", f"{used} {taken_at_ms}")
        (tmp_path / "cadvisor").write_text(body)
        use.look()
    assert use.shares()["webhook"] == 0.5
    assert use.shares_now({"webhook-1"}) == {"webhook": 0.25}
    assert use.has_seen_since(1795464630.0, {"webhook-1"})
    assert not use.has_seen_since(1795464630.0, {"webhook-1", "scheduler-1"})
