"""Objects that end-to-end tests create: pods, Jobs and CronJobs."""

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
    """Return a pod template that runs a script of the shell; it may run in `restricted` too."""
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
    """Return a pod made of a template."""
    metadata = {**template["metadata"], "name": name}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def job(name: str, template: Mapping[str, Any], **said: str) -> dict[str, Any]:
    """Return a Job; `max_delay` stands for the annotation greensched.io/max-delay."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "annotations": annotations(**said)},
        "spec": {"backoffLimit": 0, "template": template},
    }


def cron_job(name: str, schedule: str, template: Mapping[str, Any], **said: str) -> dict[str, Any]:
    """Return a CronJob whose runs may wait as it says."""
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name, "annotations": annotations(**said)},
        "spec": {
            "schedule": schedule,
            "timeZone": "Etc/UTC",
            "jobTemplate": {"spec": {"template": template}},
        },
    }


def annotations(**said: str) -> dict[str, str]:
    """Return annotations of ours; their names are written with `_` for `-`."""
    return {f"{labels.GROUP}/{key.replace('_', '-')}": text for key, text in said.items()}
