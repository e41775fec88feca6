"""Keeps the demo running after its runs: on the wall clock, with a pod and a held Job."""

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any

from greensched_core import labels
from greensched_testbed.demo.play import DemoStage, SlotsByZone
from greensched_testbed.demo.waiting import ZONE_OF_DATA
from greensched_testbed.replay import TESTBED_RUNTIME

NAMESPACE = "demo"
_POD, _JOB = "placed", "waits"
HELD_JOB = f"{NAMESPACE}/{_JOB}"
_PATIENCE_S = 30.0
_POLL_S = 0.3


async def continue_on_wall_clock(stage: DemoStage, grid: SlotsByZone) -> str:
    """Continue GreenSched in real time, and return a pod that it placed.

    The grid restarts at six in the morning: the solar grid gets cleaner each hour until noon.
    """
    await asyncio.to_thread(stage.continue_on_wall_clock)
    await stage.publish(grid, stage.now())
    await asyncio.to_thread(_create, stage, ZONE_OF_DATA)
    return f"{NAMESPACE}/{_POD}"


def _create(stage: DemoStage, zone: str) -> None:
    stage.plane.create_namespace(NAMESPACE)
    objects = json.dumps({"apiVersion": "v1", "kind": "List", "items": [_pod(), _job(zone)]})
    stage.plane.kubectl("apply", "-n", NAMESPACE, "-f", "-", stdin=objects)
    deadline = time.monotonic() + _PATIENCE_S
    while not (_is_placed(stage) and _is_planned(stage)) and time.monotonic() < deadline:
        time.sleep(_POLL_S)


def _is_placed(stage: DemoStage) -> bool:
    node = "jsonpath={.spec.nodeName}"
    return bool(stage.plane.kubectl("get", "pod", _POD, "-n", NAMESPACE, "-o", node))


def _is_planned(stage: DemoStage) -> bool:
    text = stage.plane.kubectl("get", "job", _JOB, "-n", NAMESPACE, "-o", "json")
    annotations: Mapping[str, str] = json.loads(text)["metadata"].get("annotations", {})
    return labels.PLANNED_START in annotations


def _pod() -> Mapping[str, Any]:
    marks = {labels.RUNTIME: "1h", TESTBED_RUNTIME: "1h"}
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": _POD, "annotations": marks},
        "spec": _spec({}),
    }  # fmt: skip


def _job(zone: str) -> Mapping[str, Any]:
    asks = {labels.DEADLINE: "24h", labels.RUNTIME: "2h"}
    template = {
        "metadata": {"annotations": {TESTBED_RUNTIME: "2h"}},
        "spec": _spec({labels.GRID_ZONE: zone}),
    }
    return {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": _JOB, "annotations": asks},
        "spec": {"template": template, "backoffLimit": 0},
    }  # fmt: skip


def _spec(selector: Mapping[str, str]) -> Mapping[str, Any]:
    return {
        "schedulerName": labels.SCHEDULER_NAME,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "nodeSelector": dict(selector),
        "containers": [{
            "name": "main", "image": "registry.k8s.io/pause:3.10",
            "resources": {"requests": {labels.CPU: "8", labels.MEMORY: "16Gi"}},
        }],
    }  # fmt: skip
