"""Work and rules told in a line, and an API server that answers as it is told."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx

from greensched_core import labels
from greensched_core.custom_resources.policy_lookup import PolicyOrigin
from greensched_core.kubernetes_api import ApiAccess, ApiClient
from greensched_core.signals.timestamps import format_timestamp
from greensched_operator.holding.judging import HoldRules
from greensched_operator.objects.cron_jobs import CronJob
from greensched_operator.objects.green_policy import GreenPolicy, Mode, Resolved
from greensched_operator.objects.queue_gate import KUEUE_QUEUE
from greensched_operator.objects.workloads import Work, WorkKind, decode_work
from greensched_operator.writing.outbox import Outbox

NOW_S = 1_700_000_000.0
HOUR_S = 3600.0
PATIENCE_S = 60.0
ENFORCING = GreenPolicy(mode=Mode.ENFORCE)


def marks(at_s: float = NOW_S, until_s: float = NOW_S + 4 * HOUR_S, **more: str) -> dict[str, str]:
    """Return what the webhook writes on held work, and more annotations of ours."""
    return {
        labels.HELD_AT: format_timestamp(at_s),
        labels.LATEST_START: format_timestamp(until_s),
        **{f"{labels.GROUP}/{name.replace('_', '-')}": text for name, text in more.items()},
    }


def stored(
    name: str = "train",
    annotations: Mapping[str, str] | None = None,
    *,
    kind: WorkKind = WorkKind.JOB,
    is_stopped: bool = True,
    gang: str = "",
    scheduler: str = labels.SCHEDULER_NAME,
    owner: Mapping[str, Any] | None = None,
    queue: str = "",
    **status: Any,
) -> dict[str, Any]:
    """Return a Job or pod as the API server stores it; the uid is its name."""
    said = dict(marks(deadline="6h") if annotations is None else annotations)
    if gang:
        said[labels.GANG] = gang
    pod: dict[str, Any] = {"schedulerName": scheduler, "containers": [
        {"name": "main", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]}  # fmt: skip
    spec = {"suspend": is_stopped, "template": {"spec": pod}} if kind == WorkKind.JOB else pod
    if kind == WorkKind.POD and is_stopped:
        pod["schedulingGates"] = [{"name": labels.GATE}]
    meta = {"name": name, "namespace": "team", "uid": name, "annotations": said,
            "creationTimestamp": format_timestamp(NOW_S),
            "labels": {KUEUE_QUEUE: queue} if queue else {},
            "ownerReferences": [owner] if owner else []}  # fmt: skip
    return {"kind": str(kind), "metadata": meta, "spec": spec, "status": status}


def work_of(*arguments: Any, **told: Any) -> Work:
    """Return what a Job or pod of `stored` is to us."""
    kind = told.get("kind", WorkKind.JOB)
    return decode_work(kind, json.dumps(stored(*arguments, **told)).encode())


def rules(
    policy: GreenPolicy = ENFORCING,
    cron_job: CronJob | None = None,
    *,
    is_emergency_release: bool = False,
) -> HoldRules:
    """Return rules by which all work follows one policy."""
    resolved = Resolved(policy, PolicyOrigin.BUILT_IN)
    return HoldRules(lambda *_: resolved, lambda *_: cron_job, is_emergency_release)


def api_of(answer: Callable[[httpx.Request], httpx.Response]) -> ApiClient:
    """Return a client of an API server that answers so."""
    access = ApiAccess("http://api", ssl.create_default_context())
    return ApiClient(access, transport=httpx.MockTransport(answer))


def refused(status: int, message: str = "no") -> httpx.Response:
    """Return how the API server refuses."""
    return httpx.Response(status, json={"kind": "Status", "message": message})


@asynccontextmanager
async def running(outbox: Outbox) -> AsyncIterator[None]:
    """Have an outbox sent meanwhile."""
    task = asyncio.create_task(outbox.run())
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
