"""Starts all held work of the cluster, then ends; an uninstall runs it before deleting the rest.

It first deletes the webhook's configuration, so that nothing new is held while Helm uninstalls:
Helm deletes accounts before webhooks. Then it starts held work and turns the emergency release on,
so that the operator pauses nothing either. The emergency release's ConfigMap is owned by the
ServiceAccount that `emergency_release_owner` names. An uninstall deletes both, so that a new
installation holds work again.
"""

import asyncio
import contextlib
from dataclasses import dataclass

import msgspec
import structlog

from greensched_core.api_paths import CONFIGURATIONS, JOBS, PODS, UNBOUND, config_maps_path
from greensched_core.clock import Clock
from greensched_core.errors import ApiUnavailable
from greensched_core.kubernetes_api import ApiClient
from greensched_operator.kueue.releasing import HeldWorkloads
from greensched_operator.objects.held import HeldObject
from greensched_operator.objects.release_patch import (
    ReleaseReason,
    media_type,
    object_path,
    release_patch,
)
from greensched_operator.objects.watched import EMERGENCY
from greensched_operator.objects.workloads import WorkKind
from greensched_operator.release.releaser import decode_stopped, held_object
from greensched_operator.runtime.settings import OperatorSettings

log = structlog.get_logger()

_PAUSE_S = 2.0  # between two lists: work that the webhook held meanwhile is in the next
_EMPTY_LISTS = 3  # reviews in flight when the webhook was deleted end within 2 s
_AT_ONCE = 8  # patches in flight
_MOST_NAMED = 20  # workloads in the message that could not be started


class _OwnerMeta(msgspec.Struct):
    uid: str


class _Owner(msgspec.Struct):
    metadata: _OwnerMeta


@dataclass(frozen=True, slots=True)
class EmergencyReleaseOutcome:
    """The result of an emergency release."""

    released: int
    left: tuple[str, ...]  # workloads that are still held, and why
    fault: str = ""  # any other reason why it is not done
    note: str = ""  # a warning, even if it is done

    @property
    def is_done(self) -> bool:
        """Return whether nothing is held, and nothing will be."""
        return not self.left and not self.fault

    @property
    def text(self) -> str:
        """Return a message for the user who uninstalls."""
        released = f"released {self.released} held workloads"
        if self.is_done:
            return "; ".join(filter(None, [f"{released}; none is still held", self.note]))
        more = f", and {len(self.left) - _MOST_NAMED} more" if len(self.left) > _MOST_NAMED else ""
        held = f"{len(self.left)} still held: {', '.join(self.left[:_MOST_NAMED])}{more}"
        return "; ".join((released, *([held] if self.left else []), *filter(None, [self.fault])))


class EmergencyRelease:
    """Releases by lists, not watches, as it lives for about a minute."""

    def __init__(self, settings: OperatorSettings, client: ApiClient, clock: Clock) -> None:
        """Take the operator's `clock`, which dates the releases."""
        self._settings = settings
        self._client = client
        self._clock = clock
        # By uid: held at the last list, and not started since.
        self._held: dict[str, HeldObject] = {}
        self._workloads = HeldWorkloads(client)
        self._seen: set[str] = set()  # uids of all work that any list showed as held
        self._refused: dict[str, str] = {}  # the reason, by uid
        self._note = ""
        self._fault = "it was stopped before it could list held work"

    async def run(self, stop: asyncio.Event) -> EmergencyReleaseOutcome:
        """Release until nothing is held, `stop` is set or time is out, and return the outcome.

        Work that the operator starts meanwhile counts as released.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._settings.emergency_release_timeout_s):
                await self._until_none(stop)
        left = [
            f"{each.title} ({self._refused.get(each.uid, 'time ran out')})"
            for each in self._held.values()
        ]
        return EmergencyReleaseOutcome(
            len(self._seen - self._held.keys()), tuple(left), self._fault, self._note
        )

    async def _until_none(self, stop: asyncio.Event) -> None:
        is_deleted, is_on, empty_lists = False, False, 0
        while empty_lists < _EMPTY_LISTS and not stop.is_set():
            try:
                is_deleted = is_deleted or await self._delete_webhook()
                has_seen = await self._look()
                await self._release()
                is_on = is_on or await self._turn_on()
                empty_lists = 0 if has_seen else empty_lists + 1
                self._fault = ""
            except ApiUnavailable as fault:
                self._fault = str(fault)
                log.warning("an API call failed; trying again", reason=str(fault))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_PAUSE_S):
                    await stop.wait()

    async def _delete_webhook(self) -> bool:
        name = self._settings.webhook_configuration
        try:
            await self._client.delete(f"{CONFIGURATIONS}/{name}")
        except ApiUnavailable as fault:
            if fault.status == 403:  # an older chart's account; the emergency release must do
                self._note = f"MutatingWebhookConfiguration {name} could not be deleted: {fault}"
            elif fault.status != 404:
                raise
        return True

    async def _turn_on(self) -> bool:
        settings = self._settings
        configmaps = config_maps_path(settings.namespace)
        meta = {"name": EMERGENCY, "ownerReferences": await self._owners()}
        try:
            await self._client.create(configmaps, msgspec.json.encode({"metadata": meta}))
        except ApiUnavailable as fault:
            if fault.status != 409:
                raise
            log.info(
                "the emergency release was already on",
                configmap=f"{settings.namespace}/{EMERGENCY}",
            )
        return True

    async def _owners(self) -> list[dict[str, str]]:
        name = self._settings.emergency_release_owner
        if not name:
            return []
        path = f"/api/v1/namespaces/{self._settings.namespace}/serviceaccounts/{name}"
        found = msgspec.json.decode(await self._client.get(path), type=_Owner)
        uid = found.metadata.uid
        return [{"apiVersion": "v1", "kind": "ServiceAccount", "name": name, "uid": uid}]

    async def _look(self) -> bool:
        """List held work; return whether there is any."""
        found: dict[str, HeldObject] = {}
        for kind, path, selector in ((WorkKind.JOB, JOBS, ""), (WorkKind.POD, PODS, UNBOUND)):
            async for page in self._client.pages(path, field_selector=selector):
                for raw in page.items:
                    if held := held_object(kind, decode_stopped(raw)):
                        found[held.uid] = held
        if self._settings.kueue:
            await self._workloads.list_anew()
            found |= {held.uid: held for held in self._workloads}
        self._held = found
        self._seen |= found.keys()
        return bool(found)

    async def _release(self) -> None:
        slots = asyncio.Semaphore(_AT_ONCE)

        async def release(one: HeldObject) -> None:
            async with slots:
                await self._release_one(one)

        await asyncio.gather(*(release(each) for each in list(self._held.values())))

    async def _release_one(self, one: HeldObject) -> None:
        reason, now_s = ReleaseReason.UNINSTALL, self._clock.now()
        body = release_patch(one.kind, one.uid, reason, now_s, one.queue_gates)
        path = object_path(one.kind, one.namespace, one.name)
        try:
            if one.kind == WorkKind.WORKLOAD:
                if not await self._workloads.release(one, body):
                    self._refused[one.uid] = "its AdmissionCheck could not be set"
                    return
            else:
                await self._client.patch(path, body, media_type(one.kind, one.queue_gates))
        except ApiUnavailable as fault:
            if fault.status not in (404, 409):  # gone, or another object has its name
                self._refused[one.uid] = str(fault)
                return
        self._held.pop(one.uid, None)
