"""The bundles that GreenPolicies name: their `where` heads, from ConfigMaps.

ConfigMaps are of the operator's namespace, as the operator reads them for the `when` heads.
"""

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import structlog

from greensched_core.errors import BadInput
from greensched_extender.metrics import BundleLoad
from greensched_policies.learned.config_map import ConfigMapObject, bundle_files, load_files
from greensched_policies.learned.guard import NamedPolicy, WhereGuard, WhereRule
from greensched_policies.learned.heads import WHERE
from greensched_policies.learned.model_fields import ONNX

log = structlog.get_logger()

MOST_BUNDLES = 16  # each has a session of some MB
Files = Mapping[str, bytes]


class ServingBundle(NamedTuple):
    """A loaded bundle; no guard if it has no `where` head."""

    name: str  # by its card
    guard: WhereGuard | None
    runners: Mapping[str, str]  # what computes each head
    fingerprint: str  # of its files


class PolicyBundles:
    """Loads bundles outside of requests; a sink for the watch of ConfigMaps.

    A refused version never replaces the one in use. A ConfigMap that a new list lacks stays in use
    until it is deleted.
    """

    def __init__(
        self, guarded: Callable[[WhereRule], WhereGuard], count_load: Callable[[BundleLoad], None]
    ) -> None:
        """`guarded` adds a fallback rule and a time budget to a head."""
        self._guarded = guarded
        self._count_load = count_load
        self._serving: dict[str, ServingBundle] = {}  # by ConfigMap
        self._refusals: dict[str, str] = {}
        self._waiting: dict[str, Files] = {}  # the newest version that is not loaded yet
        self._loading = ""  # the ConfigMap whose files are loaded now
        self._changed = asyncio.Event()

    def get(self, config_map: str) -> ServingBundle | None:
        """Return the bundle of a ConfigMap; None if there is none that can be used."""
        return self._serving.get(config_map)

    def list_began(self) -> None:
        """Do nothing: a list removes no bundle."""

    def list_ended(self) -> None:
        """Do nothing: a list removes no bundle."""

    def upsert(self, item: ConfigMapObject) -> None:
        """Take in a ConfigMap that is new or has changed; ignore one without a card.

        Raises ValueError for `binaryData` that is not base64.
        """
        name, files = item.metadata.name, bundle_files(item)
        loaded = self._serving.get(name)
        if files and (loaded is None or loaded.fingerprint != _fingerprint(files)):
            self._waiting[name] = files
            self._changed.set()

    def remove(self, item: ConfigMapObject) -> None:
        """Drop a deleted ConfigMap."""
        name = item.metadata.name
        for known in (self._serving, self._refusals, self._waiting):
            known.pop(name, None)
        if self._loading == name:
            self._loading = ""

    async def keep_loading(self) -> None:
        """Load what arrives until cancelled; a self test takes some 10 ms, so in a thread."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            while self._waiting:
                await self._load_one(*self._waiting.popitem())

    async def _load_one(self, name: str, files: Files) -> None:
        self._loading = name
        try:
            found = await asyncio.to_thread(self._load, name, files)
        except BadInput as fault:
            self._refuse(name, str(fault))
            return
        if self._loading != name:
            return  # it was deleted meanwhile
        self._serving[name] = found
        self._refusals.pop(name, None)
        self._count_load(BundleLoad.LOADED)
        log.info(
            "a policy's bundle serves",
            config_map=name,
            bundle=found.name,
            runs_in=dict(found.runners),
        )

    def describe(self) -> dict[str, Any]:
        """Return the bundles in use, and why others are not, as JSON values."""
        serving = {
            name: {
                "name": each.name,
                "hasWhereHead": each.guard is not None,
                "runsIn": dict(each.runners),
            }
            for name, each in self._serving.items()
        }
        return {"serving": serving, "refused": dict(self._refusals)}

    def _load(self, name: str, files: Files) -> ServingBundle:
        if name not in self._serving and len(self._serving) >= MOST_BUNDLES:
            raise BadInput(f"{MOST_BUNDLES} ConfigMaps with bundles serve already; delete some")
        bundle = load_files(files, needs=())
        has_head = WHERE.name in bundle.heads
        guard = self._guarded(NamedPolicy(ONNX, bundle.where)) if has_head else None
        return ServingBundle(bundle.card.name, guard, bundle.runners, _fingerprint(files))

    def _refuse(self, name: str, reason: str) -> None:
        self._refusals[name] = reason
        self._count_load(BundleLoad.REFUSED)
        log.warning("a policy's bundle is refused", config_map=name, reason=reason)


def _fingerprint(files: Files) -> str:
    whole = hashlib.sha256()
    for name, content in sorted(files.items()):
        whole.update(hashlib.sha256(name.encode()).digest() + hashlib.sha256(content).digest())
    return whole.hexdigest()
