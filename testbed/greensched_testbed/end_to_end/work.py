"""Builds the objects that end-to-end tests create: pods, Jobs and CronJobs."""

from collections.abc import Mapping
from typing import Any

from greensched_core import labels


def pod_template(
    image: str,
    script: str = "true",
    *,
    annotations: Mapping[str, str] | None = None,
    scheduler: str = labels.SCHEDULER_NAME,
) -> dict[str, Any]:
    """Return a pod template that runs a shell script; Pod Security `restricted` admits it."""
    container = {
        "name": "main",
        "image": image,
        "command": ["/bin/sh", "-c", script],
        "resources": {"requests": {"cpu": "100m", "memory": "16Mi"}, "limits": {"memory": "64Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "runAsNonRoot": True,
            "runAsUser": 65534,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    spec = {
        "schedulerName": scheduler,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "containers": [container],
    }
    return {"metadata": {"annotations": dict(annotations or {})}, "spec": spec}


def pod(name: str, template: Mapping[str, Any]) -> dict[str, Any]:
    """Return a pod from a template."""
    metadata = {**template["metadata"], "name": name}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def job(name: str, template: Mapping[str, Any], **request: str) -> dict[str, Any]:
    """Return a Job; the argument `max_delay` sets the annotation greensched.io/max-delay."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "annotations": annotations(**request)},
        "spec": {"backoffLimit": 0, "template": template},
    }


def cron_job(
    name: str, schedule: str, template: Mapping[str, Any], **request: str
) -> dict[str, Any]:
    """Return a CronJob whose runs have these annotations."""
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name, "annotations": annotations(**request)},
        "spec": {
            "schedule": schedule,
            "timeZone": "Etc/UTC",
            "jobTemplate": {"spec": {"template": template}},
        },
    }


def annotations(**request: str) -> dict[str, str]:
    """Return GreenSched annotations; argument names have `_` for `-`."""
    return {f"{labels.GROUP}/{key.replace('_', '-')}": text for key, text in request.items()}
