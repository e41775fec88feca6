"""What is created for a day: nodes, and an object or more for each job."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from greensched_core import labels
from greensched_core.power.hardware import shipped_catalogue
from greensched_policies.costs.cost import CURVE_POINTS
from greensched_simulator.scenario.cluster import NodeGroup
from greensched_simulator.world.world import World
from greensched_testbed.held_day.day import CRON_RUN, GANG, POD, Day, ItemRun
from greensched_testbed.nodes import EqualNodes
from greensched_testbed.replay import TESTBED_RUNTIME

ITEM = "held-day"  # label: place in the world's jobs
_CRON_JOB = "nightly"


def node_groups_of(world: World, kinds: Sequence[NodeGroup] = ()) -> list[EqualNodes]:
    """Return a cluster node for each of the world's nodes, with the same power, speed and zone.

    `kinds`: the scenario's groups of nodes, for the hardware's names; without them the speed is 1.
    """
    nodes, groups = world.nodes, []
    curves = world.curve_watts.reshape(-1, CURVE_POINTS)
    kind_of: list[NodeGroup | None] = [kind for kind in kinds for _ in range(kind.count)]
    kind_of = kind_of or [None] * len(world.node_names)
    for place, (name, kind) in enumerate(zip(world.node_names, kind_of, strict=True)):
        watts = curves[int(nodes.curve_class[place])]
        groups.append(
            EqualNodes(
                count=1,
                name_prefix=name,
                cpu_cores=float(nodes.cpu_capacity[place]),
                memory_bytes=float(nodes.memory_capacity[place]),
                gpus=round(float(nodes.gpu_capacity[place])),
                gpu_model=_gpu_product(kind),
                grid_zone=world.zones[nodes.zone[place]],
                power_model="" if kind is None or kind.hardware is None else kind.hardware,
                annotations={labels.POWER_CURVE_WATTS: ",".join(f"{each:.3f}" for each in watts)},
                extra_labels={labels.PUE: str(float(nodes.pue[place]))},
            )
        )
    return groups


def _gpu_product(kind: NodeGroup | None) -> str:
    """Return a product name by which the catalogue finds the GPUs of a scenario's nodes."""
    if kind is None or kind.gpus is None:
        return ""
    return "-".join(sorted(shipped_catalogue().gpus[kind.gpus.model].product))


def item_objects(day: Day, item: ItemRun, cron_uid: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the API path and body of each object with which one of the world's jobs is created."""
    name = f"{item.kind}-{item.place}"
    said = _annotations(day, item.place)
    if item.kind == GANG:
        gang = {labels.GANG: name}
        for worker in range(item.workers):
            yield _pod(day, item.place, f"{name}-{worker}", said | gang)
    elif item.kind == POD:
        yield _pod(day, item.place, name, said)
    else:
        yield _job(day, item, name, said, cron_uid)


def _annotations(day: Day, place: int) -> dict[str, str]:
    jobs = day.world.jobs
    said = {labels.RUNTIME: f"{max(float(jobs.estimate_s[place]), 1.0):.0f}s"}
    if np.isfinite(jobs.deadline_s[place]):
        slack_s = float(jobs.deadline_s[place]) - float(jobs.arrival_s[place])
        said[labels.DEADLINE] = f"{slack_s:.0f}s"
    return said


def _runtime(day: Day, place: int) -> dict[str, str]:
    """Return the annotation by which kwok ends a pod, if its runtime is known before its node."""
    if not day.is_equally_fast:
        return {}
    return {TESTBED_RUNTIME: f"{day.run_wall_s(place, 0):.3f}s"}


def _pod(
    day: Day, place: int, name: str, annotations: dict[str, str]
) -> tuple[str, dict[str, Any]]:
    meta = {
        "name": name,
        "labels": {ITEM: str(place)},
        "annotations": annotations | _runtime(day, place),
    }
    spec = _pod_spec(day, place)
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
    return f"/api/v1/namespaces/{day.namespace}/pods", body


def _job(
    day: Day, item: ItemRun, name: str, annotations: dict[str, str], cron_uid: str
) -> tuple[str, dict[str, Any]]:
    mark = {ITEM: str(item.place)}
    meta: dict[str, Any] = {"name": name, "labels": mark, "annotations": annotations}
    if item.kind == CRON_RUN:
        meta["ownerReferences"] = [{
            "apiVersion": "batch/v1", "kind": "CronJob", "name": _CRON_JOB, "uid": cron_uid,
            "controller": True, "blockOwnerDeletion": True,
        }]  # fmt: skip
    own = {"labels": mark, "annotations": _runtime(day, item.place)}
    template = {"metadata": own, "spec": _pod_spec(day, item.place)}
    return f"/apis/batch/v1/namespaces/{day.namespace}/jobs", {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": meta,
        "spec": {"template": template, "backoffLimit": 0},
    }  # fmt: skip


def _pod_spec(day: Day, place: int) -> dict[str, Any]:
    jobs = day.world.jobs
    requests = {
        labels.CPU: f"{max(1, round(float(jobs.cpu_cores[place]) * 1000))}m",
        labels.MEMORY: str(round(float(jobs.memory_bytes[place]))),
    }
    resources = {"requests": requests}
    if gpus := round(float(jobs.gpus[place])):
        resources["limits"] = {labels.NVIDIA_GPU: str(gpus)}
        requests[labels.NVIDIA_GPU] = str(gpus)
    return {
        "schedulerName": day.scheduler,
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 0,
        "containers": [{
            "name": "main", "image": "registry.k8s.io/pause:3.10", "resources": resources,
        }],
    }  # fmt: skip


def owning_cron_job(day: Day) -> dict[str, Any]:
    """Return the CronJob that owns runs; suspended, since its controller uses the wall clock."""
    return {
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": _CRON_JOB},
        "spec": {
            "schedule": "0 0 1 1 *", "suspend": True,
            "jobTemplate": {"spec": {"template": {"spec": _pod_spec(day, 0)}}},
        },
    }  # fmt: skip
