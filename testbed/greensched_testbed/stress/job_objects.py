"""Builds stress Jobs as batch/v1 Jobs: fixed work in busybox, allowed in restricted namespaces."""

import math
from dataclasses import dataclass
from typing import Any

from greensched_core import labels
from greensched_testbed.replay import TESTBED_RUNTIME
from greensched_testbed.stress.strategies import Strategy
from greensched_testbed.stress.suite import BODIES, StressJob, StressKind

JOB_LABEL = f"{labels.GROUP}/stress-job"  # on Jobs and their pods: the Job's name in the suite
IMAGE = "busybox:1.37"
GPU_IMAGE = "nvcr.io/nvidia/k8s/cuda-sample:nbody"
_NOBODY_ID = 65_534
_HASH_CORES = """\
set -e; started=
for core in $(seq "$CORES"); do
  { dd if=/dev/zero bs=1M count="$MIB" 2>/dev/null | sha256sum > /dev/null; } &
  started="$started $!"
done
for each in $started; do wait "$each"; done
"""
_HASH_MEMORY = """\
set -e
dd if=/dev/zero of=/fill/zeros bs=1M count="$MIB" 2>/dev/null
for pass in $(seq "$PASSES"); do sha256sum /fill/zeros > /dev/null; done
"""


@dataclass(frozen=True, slots=True)
class Images:
    """The images of the containers; name a mirror if the default registry is unreachable."""

    plain: str = IMAGE
    gpu: str = GPU_IMAGE


def namespace_object(name: str) -> dict[str, Any]:
    """Return the namespace of one run; Pod Security enforces `restricted` for its pods."""
    marks = {"pod-security.kubernetes.io/enforce": "restricted", JOB_LABEL: "suite"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": marks}}


def job_object(
    job: StressJob, strategy: Strategy, images: Images, *, is_played: bool = False
) -> dict[str, Any]:
    """Return the Job as a JSON value; if `is_played`, kwok runs it for its expected runtime."""
    marks = {JOB_LABEL: job.name}
    played = {TESTBED_RUNTIME: f"{job.runtime_s:.3f}s"} if is_played else {}
    metadata = {"name": job.name, "labels": marks, **_annotated(_our_annotations(job, strategy))}
    template = {
        "metadata": {"labels": marks, **_annotated(played)},
        "spec": _pod_spec(job, strategy, images),
    }
    spec = {"backoffLimit": 0, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def pinned(job: dict[str, Any], node: str) -> dict[str, Any]:
    """Return the Job with its pod bound to a node, without a scheduler."""
    template = job["spec"]["template"]
    spec = {**template["spec"], "nodeName": node}
    return {**job, "spec": {**job["spec"], "template": {**template, "spec": spec}}}


def _annotated(annotations: dict[str, str]) -> dict[str, Any]:
    return {"annotations": annotations} if annotations else {}


def _our_annotations(job: StressJob, strategy: Strategy) -> dict[str, str]:
    if not strategy.annotates_runtime:
        return {}
    annotations = {labels.RUNTIME: f"{job.runtime_s:.0f}s" if job.runtime_s >= 1 else "1s"}
    if not strategy.annotates_deadline:
        return annotations | {labels.RUN_NOW: "true"}  # overrides the namespace's policy
    if job.deadline_s is not None:
        annotations[labels.DEADLINE] = f"{job.deadline_s:.0f}s"
    return annotations


def _pod_spec(job: StressJob, strategy: Strategy, images: Images) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "schedulerName": strategy.scheduler,
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 0,
        "securityContext": {
            "runAsNonRoot": True, "runAsUser": _NOBODY_ID, "runAsGroup": _NOBODY_ID,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(job, images)],
    }  # fmt: skip
    if job.kind is StressKind.MEMORY:
        fill = {"medium": "Memory", "sizeLimit": f"{job.fill_mib + 1}Mi"}
        spec["volumes"] = [{"name": "fill", "emptyDir": fill}]
    return spec


def _container(job: StressJob, images: Images) -> dict[str, Any]:
    # Limits equal requests: what a Job may use does not depend on other work on its node.
    amounts = {labels.CPU: f"{job.cores * 1000:.0f}m", labels.MEMORY: str(job.memory_bytes)}
    if job.gpus:
        amounts[labels.NVIDIA_GPU] = str(job.gpus)
    return {
        "name": "stress",
        **_program(job, images),
        "resources": {"requests": amounts, "limits": amounts},
        "securityContext": {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }  # fmt: skip


def _program(job: StressJob, images: Images) -> dict[str, Any]:
    if job.kind is StressKind.GPU:
        words = ["nbody", "-benchmark", f"-numbodies={BODIES}", f"-i={job.work}"]
        return {"image": images.gpu, "command": words}
    if job.kind is StressKind.MEMORY:
        variables = {"MIB": job.fill_mib, "PASSES": job.work}
        mounts = [{"name": "fill", "mountPath": "/fill"}]
        return _script(images, _HASH_MEMORY, variables) | {"volumeMounts": mounts}
    return _script(images, _HASH_CORES, {"CORES": max(1, math.floor(job.cores)), "MIB": job.work})


def _script(images: Images, text: str, variables: dict[str, int]) -> dict[str, Any]:
    env = [{"name": name, "value": str(value)} for name, value in variables.items()]
    return {"image": images.plain, "command": ["sh", "-c", text], "env": env}
