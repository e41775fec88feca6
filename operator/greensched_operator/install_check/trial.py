"""A Job and a pod that test an installation and are deleted afterwards."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import msgspec
import structlog

from greensched_core import labels
from greensched_core.api_paths import CONFIGURATIONS
from greensched_core.errors import ApiUnavailable
from greensched_core.kubernetes_api import ApiClient
from greensched_operator.install_check.checklist import (
    CheckFailed,
    NotAsked,
    Right,
    kubectl,
    tried_job,
    tried_pod,
)
from greensched_operator.install_check.settings import InstallCheckSettings
from greensched_operator.objects.watched import EMERGENCY
from greensched_operator.runtime.settings import OperatorSettings

log = structlog.get_logger()

_PAUSE_S = 0.5  # between two attempts
_CLEANING_S = 20.0
_COMPONENT = "app.kubernetes.io/component"
_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class Trial:
    """Tests webhook, scheduler and controller with its own Job and pod."""

    def __init__(
        self,
        settings: InstallCheckSettings,
        operator: OperatorSettings,
        client: ApiClient,
        name: str,
    ) -> None:
        """`name` is the name of both the Job and the pod."""
        self._settings = settings
        self._operator = operator
        self._kubectl = partial(kubectl, operator.namespace)
        self._client = client
        self._name = name
        self._jobs = f"/apis/batch/v1/namespaces/{settings.namespace}/jobs"
        self._pods = f"/api/v1/namespaces/{settings.namespace}/pods"
        self._created: list[str] = []

    async def may(self, right: Right) -> bool:
        """Return whether an account has a right."""
        body = msgspec.json.encode(right.review())
        reply = msgspec.json.decode(await self._client.create(_REVIEWS, body))
        return bool(reply["status"]["allowed"])

    async def dry_run(self) -> str:
        """Create a Job in a dry run, for which the API server calls the webhook."""
        if not self._settings.can_hold:
            raise NotAsked("this release has no webhook")
        body = msgspec.json.encode(self._job())
        unheld: dict[str, Any] = {}

        async def is_held() -> dict[str, Any] | None:
            nonlocal unheld
            unheld = msgspec.json.decode(
                await self._client.create(f"{self._jobs}?dryRun=All", body)
            )
            return unheld if _is_held(unheld) else None

        held = await self._until(is_held)
        if held is None:
            raise await self._why_unheld(unheld)
        return f"in a dry run the Job is held until {_annotations(held)[labels.LATEST_START]}"

    async def place(self) -> str:
        """Create a pod and wait until the release's scheduler has placed it."""
        scheduler = self._settings.scheduler_name
        if not scheduler:
            raise NotAsked("this release has no scheduler")
        spec = tried_pod(scheduler, self._settings.image)
        pod = {"metadata": {"name": self._name}, "spec": spec}
        path = await self._create(self._pods, pod)

        async def placed() -> dict[str, Any] | None:
            found = msgspec.json.decode(await self._client.get(path))
            return found if found["spec"].get("nodeName") else None

        found = await self._until(placed)
        if found is None:
            raise self._unplaced(msgspec.json.decode(await self._client.get(path)))
        return f"{scheduler} put it on {found['spec']['nodeName']}"

    async def hold(self) -> str:
        """Create a Job that the webhook holds, and have the controller start it by run-now."""
        if not self._settings.can_hold:
            raise NotAsked("this release holds nothing")
        path = await self._create(self._jobs, self._job())
        made = msgspec.json.decode(await self._client.get(path))
        if not _is_held(made) and labels.RELEASED_AT not in _annotations(made):
            raise await self._why_unheld(made)
        note = {"metadata": {"annotations": {labels.RUN_NOW: "true"}}}
        await self._client.patch(path, msgspec.json.encode(note))

        async def started() -> dict[str, Any] | None:
            job = msgspec.json.decode(await self._client.get(path))
            return None if job["spec"].get("suspend") else job

        job = await self._until(started)
        if job is None:
            raise CheckFailed(
                f"the Job was held, but not started within {self._settings.limit_s:.0f} s",
                self.look_at("controller"),
            )
        return (
            f"started; reason: {_annotations(job).get(labels.RELEASE_REASON, 'not by GreenSched')}"
        )

    async def clean(self) -> None:
        """Delete everything that was created; log what could not be deleted."""
        for path in self._created:
            background: dict[str, str | int] = {
                "propagationPolicy": "Background",
                "gracePeriodSeconds": 0,
            }
            try:
                async with asyncio.timeout(_CLEANING_S):
                    await self._client.delete(path, background)
            except (ApiUnavailable, TimeoutError) as fault:
                if getattr(fault, "status", None) != 404:
                    log.warning("left behind", path=path, reason=str(fault))
        self._created.clear()

    async def _create(self, collection: str, body: dict[str, Any]) -> str:
        path = f"{collection}/{self._name}"
        self._created.append(path)  # before the request, whose answer may get lost
        await self._client.create(collection, msgspec.json.encode(body))
        return path

    async def _until(
        self, found: Callable[[], Awaitable[dict[str, Any] | None]]
    ) -> dict[str, Any] | None:
        """Repeat `found` until it returns an object; return None after the time limit."""
        try:
            async with asyncio.timeout(self._settings.limit_s):
                while (one := await found()) is None:
                    await asyncio.sleep(_PAUSE_S)
                return one
        except TimeoutError:
            return None

    def _job(self) -> dict[str, Any]:
        scheduler = self._operator.scheduler_names[0]
        return tried_job(self._name, tried_pod(scheduler, self._settings.image))

    async def _why_unheld(self, job: dict[str, Any]) -> CheckFailed:
        namespace, release = self._operator.namespace, self._settings.release
        reason = _annotations(job).get(labels.HOLD_REASON, "")
        if reason.startswith("not held:"):  # the webhook wrote this, so it was called
            return CheckFailed(
                f"the trial Job is {reason}",
                f"{self.look_at('controller')}, and the same of the releaser",
            )
        emergency_release = f"/api/v1/namespaces/{namespace}/configmaps/{EMERGENCY}"
        if await self.found(emergency_release):
            return CheckFailed(
                "the emergency release is on, so nothing is held",
                self._kubectl(f"delete configmap {EMERGENCY}"),
            )
        configuration = self._operator.webhook_configuration
        found = await self.found(f"{CONFIGURATIONS}/{configuration}")
        if not found:
            return CheckFailed(
                f"there is no MutatingWebhookConfiguration {configuration}",
                "run helm upgrade again",
            )
        if not all(each["clientConfig"].get("caBundle") for each in found["webhooks"]):
            return CheckFailed(
                "the API server does not trust the webhook's certificate yet",
                f"the leading controller writes the trust: {self.look_at('controller')}",
            )
        return CheckFailed(
            "the trial Job may wait, but was not held",
            f"{self._kubectl(f'rollout status deployment/{release}-webhook')}; if it is ready, the"
            f" API server cannot reach port {self._operator.webhook_port} of its pods (a firewall,"
            " or a CNI without the control plane: docs/install.md, Your platform), or"
            " operator.webhook.namespaceSelector leaves this namespace out:"
            f" kubectl get namespace {self._settings.namespace} --show-labels",
        )

    async def found(self, path: str) -> dict[str, Any] | None:
        """Return the object at a path; None if it does not exist."""
        try:
            one: dict[str, Any] = msgspec.json.decode(await self._client.get(path))
        except ApiUnavailable as fault:
            if fault.status == 404:
                return None
            raise
        return one

    def _unplaced(self, pod: dict[str, Any]) -> CheckFailed:
        conditions = pod.get("status", {}).get("conditions", [])
        messages = [each.get("message") for each in conditions if each["type"] == "PodScheduled"]
        if messages and messages[0]:
            return CheckFailed(
                f"the pod stays Pending: {messages[0]}",
                "give the cluster a node with room for 10m of CPU and 16Mi",
            )
        return CheckFailed(
            "no scheduler tried to place the pod",
            self.look_at("scheduler"),
        )

    def look_at(self, part: str) -> str:
        """Return the commands that say why a part of the release does not run, or what it does."""
        pods = f"-l app.kubernetes.io/instance={self._settings.release},{_COMPONENT}={part}"
        logs = self._kubectl(f"logs deployment/{self._settings.release}-{part} --tail=50")
        return f"{self._kubectl(f'describe pods {pods}')}; if they run, {logs}"


def _annotations(job: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = job.get("metadata", {}).get("annotations", {})
    return found


def _is_held(job: dict[str, Any]) -> bool:
    return job["spec"].get("suspend") is True and labels.LATEST_START in _annotations(job)
