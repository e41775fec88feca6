"""Pods on nodes, as the watch brings them: when each is expected to end."""

import math
from typing import Any

import msgspec
import pytest

from greensched_core import labels
from greensched_core.clock import ManualClock
from greensched_core.signals.timestamps import format_timestamp
from greensched_operator.objects.placed_pods import PlacedPod
from greensched_operator.planning.cluster_state import RunningPods
from tests.operator.annotated_work import HOUR_S, NOW_S

SPEEDS = {"n1": 0.5, "n2": 2.0}


def pod(node: str = "n1", phase: str = "Running", deleted: str | None = None) -> PlacedPod:
    meta = {"deletionTimestamp": deleted, "name": "train", "namespace": "team", "uid": "u-1",
            "annotations": {labels.RUNTIME: "1h"}}  # fmt: skip
    requests = {"containers": [{"resources": {"requests": {"cpu": "2"}}}]}
    spec = {"schedulerName": labels.SCHEDULER_NAME, "nodeName": node, **requests}
    return msgspec.convert({"metadata": meta, "spec": spec, "status": {"phase": phase}}, PlacedPod)


def test_a_pod_is_expected_to_end_a_runtime_after_it_was_first_seen_on_its_node() -> None:
    clock, placed = ManualClock(NOW_S), list[PlacedPod]()
    schedulers = frozenset({labels.SCHEDULER_NAME})
    pods = RunningPods(schedulers, HOUR_S, clock, placed.append, lambda *_: None, lambda _: 1.0)
    pods.list_began()
    pods.list_ended()
    for passed_s in (0.0, 600.0):
        clock.advance(passed_s)
        pods.upsert(pod())
    assert [(each.node, each.cpu_cores, each.until_s) for each in pods] == [
        ("n1", 2.0, NOW_S + HOUR_S)
    ]
    assert len(placed) == 1
    pods.upsert(pod("n2"))
    assert [(each.node, each.until_s) for each in pods] == [("n2", NOW_S + 600.0 + HOUR_S)]
    pods.upsert(pod("n2", "Succeeded"))
    assert list(pods) == []


def test_a_pod_on_a_slow_node_is_expected_to_take_longer() -> None:
    schedulers, clock = frozenset({labels.SCHEDULER_NAME}), ManualClock(NOW_S)
    pods = RunningPods(
        schedulers, HOUR_S, clock, lambda _: None, lambda *_: None, SPEEDS.__getitem__
    )
    pods.upsert(pod())
    assert [each.until_s for each in pods] == [NOW_S + 2 * HOUR_S]
    pods.upsert(pod("n2"))
    assert [each.until_s for each in pods] == [NOW_S + HOUR_S / 2]


@pytest.mark.parametrize("expected_s", [None, 2 * HOUR_S])
def test_a_pod_that_is_being_deleted_ends_with_its_grace_period(expected_s: float | None) -> None:
    schedulers = frozenset({labels.SCHEDULER_NAME})
    pods = RunningPods(
        schedulers, HOUR_S, ManualClock(NOW_S), lambda _: None, lambda *_: expected_s, lambda _: 1.0
    )
    pods.upsert(pod())
    pods.upsert(pod(deleted=format_timestamp(NOW_S + 30.0)))
    assert [each.until_s for each in pods] == [NOW_S + 30.0]


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet", "DaemonSet"])
def test_a_replica_of_a_service_never_ends_by_itself(kind: str) -> None:
    assert expected_end_s(owned_by(kind)) == math.inf


def test_a_replica_that_names_a_runtime_is_expected_to_run_that_long() -> None:
    """Such as a worker of a job queue, which an autoscaler removes when the queue is empty."""
    annotated = owned_by("ReplicaSet", annotations={labels.RUNTIME: "2h"})
    assert expected_end_s(annotated) == NOW_S + 2 * HOUR_S


@pytest.mark.parametrize("kind", ["Job", "Workflow"])
def test_another_pod_that_names_no_runtime_is_expected_to_run_for_the_usual_time(kind: str) -> None:
    assert expected_end_s(owned_by(kind)) == NOW_S + HOUR_S


def owned_by(kind: str, **meta: Any) -> PlacedPod:
    """Return a pod without a runtime that a controller created."""
    owner = {"kind": kind, "name": "chat-5d8f", "uid": "o-1", "controller": True}
    item = {
        "metadata": {"name": "chat-5d8f-x2", "uid": "u-2", "ownerReferences": [owner], **meta},
        "spec": {"schedulerName": labels.SCHEDULER_NAME, "nodeName": "n1"},
    }
    return msgspec.convert(item, PlacedPod)


def expected_end_s(item: PlacedPod) -> float:
    """Return when a pod is expected to end that is seen on its node now."""
    schedulers = frozenset({labels.SCHEDULER_NAME})
    pods = RunningPods(
        schedulers, HOUR_S, ManualClock(NOW_S), lambda _: None, lambda *_: None, lambda _: 1.0
    )
    pods.upsert(item)
    (found,) = pods
    return found.until_s
