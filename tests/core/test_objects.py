import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_core.objects import (
    MOST,
    MOST_FAULTS,
    NodeObject,
    PodObject,
    allocatable,
    workload_of,
)
from greensched_core.state import Workload

GIB = 2.0**30


def container(cpu: str = "1", memory: str = "1Gi", **more: Any) -> dict[str, Any]:
    return {"resources": {"requests": {"cpu": cpu, "memory": memory}}, **more}


def read(spec: dict[str, Any], **rest: Any) -> Workload:
    item = {"metadata": {"name": "p", "uid": "u"}, "spec": spec, **rest}
    return workload_of(msgspec.json.decode(json.dumps(item).encode(), type=PodObject))


@pytest.mark.parametrize(
    ("spec", "cores"),
    [
        pytest.param({}, 0.0, id="no-containers"),
        pytest.param({"containers": [{}]}, 0.0, id="no-requests"),
        pytest.param({"containers": [container("1"), container("500m")]}, 1.5, id="they-add-up"),
        pytest.param(
            {"containers": [container("1")], "initContainers": [container("3"), container("2")]},
            3.0,
            id="the-largest-init-container",
        ),
        pytest.param(
            {
                "containers": [container("1")],
                "initContainers": [container("2", restartPolicy="Always"), container("2")],
            },
            4.0,
            id="init-beside-an-earlier-sidecar",
        ),
        pytest.param(
            {
                "containers": [container("1")],
                "initContainers": [container("2"), container("2", restartPolicy="Always")],
            },
            3.0,
            id="sidecar-beside-the-containers",
        ),
        pytest.param(
            {"containers": [container("1")], "overhead": {"cpu": "250m"}}, 1.25, id="overhead"
        ),
        pytest.param(
            {"containers": [container("1")], "resources": {"requests": {"cpu": "8"}}},
            8.0,
            id="pod-level",
        ),
    ],
)
def test_requests_follow_the_schedulers_rule(spec: dict[str, Any], cores: float) -> None:
    assert read(spec).cpu_cores == pytest.approx(cores)


def test_pod_level_requests_replace_only_what_they_name() -> None:
    workload = read(
        {"containers": [container("1", "2Gi")], "resources": {"requests": {"cpu": "8"}}}
    )
    assert (workload.cpu_cores, workload.memory_bytes) == (8.0, 2 * GIB)


def test_a_limit_counts_as_a_request_where_none_is_given() -> None:
    """The API server writes that into pods, but not into the pod templates of Jobs."""
    resources = {"requests": {"cpu": "2"}, "limits": {"cpu": "4", "nvidia.com/gpu": "2"}}
    workload = read({"containers": [{"resources": resources}]})
    assert (workload.cpu_cores, workload.memory_bytes, workload.gpus) == (2.0, 0.0, 2.0)


def test_a_limit_that_cannot_be_read_is_reported_as_one() -> None:
    workload = read({"containers": [{"resources": {"limits": {"cpu": "lots"}}}]})
    assert workload.cpu_cores == 0.0
    assert "limits.cpu" in workload.faults[0]


@pytest.mark.parametrize(
    ("phase", "finished"),
    [("Pending", False), ("Running", False), ("Succeeded", True), ("Failed", True)],
)
def test_a_finished_pod_is_known(phase: str, finished: bool) -> None:
    assert read({}, status={"phase": phase}).is_finished == finished


def test_a_pod_that_is_not_created_yet_goes_by_its_generated_name() -> None:
    item = {"metadata": {"generateName": "job-"}, "spec": {"nodeName": None}}
    workload = workload_of(msgspec.convert(item, PodObject))
    assert (workload.name, workload.node, workload.faults) == ("job-", "", ())


@pytest.mark.parametrize("text", ["1e3Ki", "-1", "", "lots", "1e30", "1000001"])
def test_a_quantity_that_cannot_be_read_is_absent_and_reported(text: str) -> None:
    workload = read({"containers": [container(text), container("2")]})
    assert workload.cpu_cores == 2.0
    assert len(workload.faults) == 1
    assert "requests.cpu" in workload.faults[0]


def test_no_pod_asks_for_more_than_machines_have() -> None:
    requests = {"cpu": "900k", "memory": "9P", "nvidia.com/gpu": "90k"}
    workload = read({"containers": [{"resources": {"requests": requests}}] * 3})
    assert (workload.cpu_cores, workload.memory_bytes, workload.gpus) == MOST
    assert read({"containers": [container("1", "9E")]}).memory_bytes == 0.0


def test_faults_are_few_and_short_whatever_the_pod_says() -> None:
    long = container("x" * 100_000, "y" * 100_000)
    item = {
        "metadata": {"annotations": {"greensched.io/runtime": "z" * 250_000}},
        "spec": {"containers": [long] * 10, "overhead": {"cpu": "-" + "1" * 250_000}},
    }
    faults = workload_of(msgspec.convert(item, PodObject)).faults
    assert len(faults) == MOST_FAULTS + 1
    assert faults[-1] == "and 14 more faults"
    assert max(map(len, faults)) < 250


@pytest.mark.parametrize(
    ("text", "runtime_s"), [("1h30m", 5400.0), ("soon", None), ("0s", None), ("-5m", None)]
)
def test_the_runtime_is_read_or_given(text: str, runtime_s: float | None) -> None:
    item = {"metadata": {"annotations": {"greensched.io/runtime": text, "other": "x"}}}
    workload = workload_of(msgspec.convert(item, PodObject))
    assert workload.runtime_s == runtime_s
    assert bool(workload.faults) == (runtime_s is None)


def test_room_is_allocatable_else_capacity_else_a_fault() -> None:
    def node(**status: dict[str, str]) -> NodeObject:
        return msgspec.convert({"metadata": {"name": "n"}, "status": status}, NodeObject)

    both = node(allocatable={"cpu": "7"}, capacity={"cpu": "8"})
    assert allocatable(both) == ((7.0, 0.0, 0.0), ())
    assert allocatable(node(capacity={"cpu": "8", "nvidia.com/gpu": "4"}))[0] == (8.0, 0.0, 4.0)
    amounts, faults = allocatable(node())
    assert amounts == (0.0, 0.0, 0.0)
    assert "nor capacity" in faults[0]


@given(st.dictionaries(st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "x"]), st.text()))
def test_no_request_whatever_it_says_raises_or_is_negative(requests: dict[str, str]) -> None:
    item = {"spec": {"containers": [{"resources": {"requests": requests}}]}}
    workload = workload_of(msgspec.convert(item, PodObject))
    assert min(workload.cpu_cores, workload.memory_bytes, workload.gpus) >= 0.0
