"""Users edit, delete, un-opt, take marks off and stop work themselves while others' is held."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from greensched_core import labels
from greensched_core.signals.timestamps import parse_timestamp
from greensched_testbed.errors import CommandFailed
from tests.operator.faults.conftest import HOUR_S, WORK, Stage, annotations_of, gates

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = [pytest.mark.controlplane, pytest.mark.day]
G = f"{labels.GROUP}/"
FULL = "full"  # a namespace whose quota lets no pod and no event in


def manifest(name: str, namespace: str = WORK, kind: str = "Job", **asked: str) -> dict[str, Any]:
    """Return a Job or pod that would wait for hours."""
    asked = {"deadline": "12h", "runtime": "30m"} | asked
    annotations = {f"{G}{key.replace('_', '-')}": text for key, text in asked.items()}
    wall = {"testbed.greensched.io/runtime": "1s"}
    spec = {
        "schedulerName": labels.SCHEDULER_NAME, "restartPolicy": "Never",
        "automountServiceAccountToken": False, "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10",
                        "resources": {"requests": {"cpu": "100m", "memory": "16Mi"}}}],
    }  # fmt: skip
    meta = {"name": name, "namespace": namespace, "annotations": annotations}
    if kind == "Pod":
        meta["annotations"] = annotations | wall
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
    template = {"metadata": {"annotations": wall}, "spec": spec}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta,
            "spec": {"template": template, "backoffLimit": 0}}  # fmt: skip


def is_stopped(item: Mapping[str, Any]) -> bool:
    """Tell whether a Job is suspended or a pod has our gate."""
    return bool(item["spec"].get("suspend") or gates(item))


class Users:
    """What users do with kubectl."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.found: dict[str, dict[str, Any]] = {}
        self.may_wait_s: list[float] = []  # by what the releaser goes

    async def create(self, *objects: dict[str, Any]) -> None:
        """Create objects."""
        bundle = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        await self.stage.kubectl("create", "-f", "-", stdin=json.dumps(bundle))

    async def get(self, kind: str, name: str, namespace: str = WORK) -> dict[str, Any]:
        """Return an object as it is now."""
        told = await self.stage.kubectl("get", kind, name, "-n", namespace, "-o", "json")
        item: dict[str, Any] = json.loads(told)
        return item

    async def patch(self, kind: str, name: str, body: dict[str, Any]) -> None:
        """Patch an object."""
        await self.stage.kubectl("patch", kind, name, "-n", WORK, "--type=merge",
                                 "-p", json.dumps(body))  # fmt: skip

    async def annotate(self, kind: str, name: str, *texts: str) -> None:
        """Change annotations, as kubectl annotate writes them."""
        await self.stage.kubectl("annotate", "--overwrite", kind, name, "-n", WORK, *texts)

    async def prepare(self) -> None:
        """Create what is meddled with; all of it waits."""
        await self.stage.kubectl("create", "namespace", FULL)
        hard = "--hard=count/pods=0,count/events=0"
        await self.stage.kubectl("create", "quota", "none", "-n", FULL, hard)
        policy = {
            "apiVersion": f"{labels.GROUP}/{labels.VERSION}", "kind": "GreenPolicy",
            "metadata": {"name": "default", "namespace": FULL}, "spec": {"mode": "enforce"},
        }  # fmt: skip
        cron = {
            "apiVersion": "batch/v1", "kind": "CronJob",
            "metadata": {"name": "goes", "namespace": WORK,
                         "annotations": {f"{G}deadline": "12h"}},
            "spec": {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": {
                "spec": {"template": manifest("any")["spec"]["template"]}}},
        }  # fmt: skip
        await self.create(policy, cron)
        uid = (await self.get("cronjob", "goes"))["metadata"]["uid"]
        run = manifest("goes-1")
        del run["metadata"]["annotations"][labels.DEADLINE]
        run["metadata"]["ownerReferences"] = [{
            "apiVersion": "batch/v1", "kind": "CronJob", "name": "goes", "uid": uid,
            "controller": True, "blockOwnerDeletion": True}]  # fmt: skip
        names = ("deleted", "opt-out", "nearer", "marks-off", "run-now", "his", "typo-later")
        await self.create(
            run, *map(manifest, names), manifest("quota", FULL),
            manifest("gone-pod", kind="Pod"), manifest("marks-off-pod", kind="Pod"),
            manifest("typo", deadline="tomorrow"),
        )  # fmt: skip
        copied = manifest("copied", kind="Pod")
        copied["spec"]["schedulingGates"] = [{"name": labels.GATE}]
        suspended = manifest("arrived-suspended")
        suspended["spec"]["suspend"] = True
        await self.create(copied, suspended)

    async def meddle(self, stage: Stage) -> None:
        """Do it, while the controller runs, and some of it while it does not."""
        await stage.at(0.3)
        await self.prepare()
        await stage.at(2.0)
        for name in ("opt-out", "nearer", "marks-off", "run-now", "his", "goes-1"):
            self.found[name] = await self.get("job", name)
        await stage.kubectl("delete", "job", "deleted", "-n", WORK, "--wait=false")
        await stage.kubectl("delete", "pod", "gone-pod", "-n", WORK, "--wait=false")
        await stage.kubectl("delete", "cronjob", "goes", "-n", WORK, "--cascade=orphan")
        await self.annotate("job", "opt-out", f"{labels.DEADLINE}-")
        await self.annotate("job", "nearer", f"{labels.DEADLINE}=5h")
        await self.annotate("job", "run-now", f"{labels.RUN_NOW}=true")
        await self.annotate("job", "typo-later", f"{labels.DEADLINE}=soon")
        await self.patch("job", "his", {"spec": {"suspend": False}})
        await stage.at(3.0)
        async with asyncio.timeout(10):  # from then on what stops it is his
            while labels.LATEST_START in annotations_of(await self.get("job", "his")):
                await asyncio.sleep(0.05)
        stage.processes.kill("controller")
        await self.annotate("job", "marks-off", f"{labels.LATEST_START}-")
        await self.annotate("pod", "marks-off-pod", f"{labels.LATEST_START}-")
        await stage.start("controller")
        await self.patch("job", "his", {"spec": {"suspend": True}})

    async def move_a_deadline(self, stage: Stage) -> None:
        """Bring a deadline nearer, which leaves the planned start where it is."""
        await stage.at(6.2)  # the next clean hour is four hours away
        await self.create(manifest("moved"))
        for deadline in ("12h", "8h"):
            await self.annotate("job", "moved", f"{labels.DEADLINE}={deadline}")
            async with asyncio.timeout(15):
                while True:
                    told = annotations_of(await self.get("job", "moved"))
                    until, at = told[labels.LATEST_START], told[labels.HELD_AT]
                    wait_s = round(parse_timestamp(until) - parse_timestamp(at))
                    if labels.PLANNED_START in told and [wait_s] != self.may_wait_s:
                        break
            self.may_wait_s.append(wait_s)


def test_users_meddle_and_everything_is_as_they_want_it(stage: Stage) -> None:
    users = Users(stage)
    runs = stage.live(users.meddle, users.move_a_deadline)
    stage.assert_promise_kept(runs)
    jobs = {each["metadata"]["name"]: each for each in stage.items("jobs")}
    pods = {each["metadata"]["name"]: each for each in stage.items("pods")}
    waited = [name for name, item in users.found.items() if is_stopped(item)]
    assert set(waited) == {*users.found}
    assert "deleted" not in jobs and "gone-pod" not in pods
    assert {name for name, item in jobs.items() if is_stopped(item)} == {
        "his", "arrived-suspended"
    }  # fmt: skip
    assert [name for name, item in pods.items() if is_stopped(item)] == []
    reasons = {name: annotations_of(item).get(labels.RELEASE_REASON) for name, item in jobs.items()}
    assert reasons["opt-out"] == reasons["typo-later"] == reasons["goes-1"] == "opt-out"
    assert reasons["run-now"] == "run-now"
    assert reasons["typo"] is None
    assert users.may_wait_s == [10.5 * HOUR_S, 6.5 * HOUR_S]
    nearer = annotations_of(jobs["nearer"])
    waited_s = parse_timestamp(nearer[labels.RELEASED_AT]) - parse_timestamp(nearer[labels.HELD_AT])
    assert waited_s <= 4 * HOUR_S
    full = json.loads(stage.plane.kubectl("get", "job", "quota", "-n", FULL, "-o", "json"))
    assert not is_stopped(full) and labels.RELEASED_AT in annotations_of(full)
    with pytest.raises(CommandFailed):
        stage.plane.kubectl("create", "-n", FULL, "-f", "-", stdin=json.dumps(
            manifest("no-room", FULL, "Pod")))  # fmt: skip
