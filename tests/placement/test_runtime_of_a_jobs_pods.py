"""How long a pod runs, said on the Job or CronJob that makes it and nowhere else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from greensched_core import labels
from tests.placement.test_explaining import command, decided

if TYPE_CHECKING:
    from tests.placement.conftest import Scene

pytestmark = pytest.mark.controlplane
BATCH = "/apis/batch/v1/namespaces/{}/{}"


def job_spec(scene: Scene, template_says: str | None) -> dict[str, Any]:
    said = {} if template_says is None else {labels.RUNTIME: template_says}
    spec = {
        "restartPolicy": "Never",
        "schedulerName": labels.SCHEDULER_NAME,
        "nodeSelector": scene.own_nodes,
        "containers": [{"name": "main", "image": "pause"}],
    }
    return {"template": {"metadata": {"annotations": said}, "spec": spec}}


async def pod_of_the_job(scene: Scene) -> str:
    async def named() -> str:
        items = json.loads(await scene.api.get(scene.pods_path))["items"]
        made = [each for each in items if each["metadata"].get("ownerReferences")]
        return made[0]["metadata"]["name"] if made else ""

    return await scene.until(named)


@pytest.mark.parametrize("template_says", [None, "20m"], ids=["job-alone", "template-too"])
async def test_what_a_job_says_counts_for_its_pods(scene: Scene, template_says: str | None) -> None:
    await scene.offer(scene.machine(100, 260), scene.machine(100, 400))  # of one no score is asked
    meta = {"name": "batch", "annotations": {labels.RUNTIME: "10m"}}
    job = {"metadata": meta, "spec": job_spec(scene, template_says)}
    await scene.api.create(BATCH.format(scene.namespace, "jobs"), json.dumps(job).encode())
    pod = await pod_of_the_job(scene)
    found = (await decided(scene, pod))["pod"]
    assert (found["runtimeSeconds"], found["runtimeIsDefault"]) == (600.0, False)
    _, told = await command(scene, "explain", pod, "-n", scene.namespace)
    assert "for 10m" in told and "not said" not in told


async def test_what_a_cronjob_says_counts_for_the_pods_of_its_runs(scene: Scene) -> None:
    await scene.offer(scene.machine(100, 260), scene.machine(100, 400))  # of one no score is asked
    cron_job = {
        "metadata": {"name": "often", "annotations": {labels.RUNTIME: "10m"}},
        "spec": {
            "schedule": "0 0 1 1 *",
            "suspend": True,
            "jobTemplate": {"spec": job_spec(scene, None)},
        },
    }
    path = BATCH.format(scene.namespace, "cronjobs")
    made = json.loads(await scene.api.create(path, json.dumps(cron_job).encode()))
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "often", "controller": True,
             "uid": made["metadata"]["uid"]}  # fmt: skip
    run = {"metadata": {"name": "often-1", "ownerReferences": [owner]},
           "spec": job_spec(scene, None)}  # fmt: skip
    await scene.api.create(BATCH.format(scene.namespace, "jobs"), json.dumps(run).encode())
    found = (await decided(scene, await pod_of_the_job(scene)))["pod"]
    assert (found["runtimeSeconds"], found["runtimeIsDefault"]) == (600.0, False)
