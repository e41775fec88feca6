"""Keeps the use of budgets in a ConfigMap, from which the next leader goes on."""

import asyncio
from collections.abc import Callable

import msgspec
import structlog

from greensched_core.api_paths import config_maps_path
from greensched_core.errors import ApiUnavailable
from greensched_operator.planning.budgets import Budgets
from greensched_operator.runtime.own_lease import OwnLease
from greensched_operator.writing.metrics import ControllerError

log = structlog.get_logger()

_WRITTEN_EVERY_S = 2.0  # wall seconds: what a killed leader has started since then is not counted
_TRIED_AGAIN_S = 30.0


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] | None = None


class KeptBudgets:
    """Reads the use of budgets once, and writes what changes; the ConfigMap is made when needed."""

    def __init__(
        self,
        budgets: Budgets,
        own: OwnLease,
        may_write: Callable[[], bool],
        failed: Callable[[ControllerError], None],
    ) -> None:
        """`may_write` returns whether this replica leads; `failed` counts an error."""
        self._budgets = budgets
        self._client = own.client
        self._config_maps = config_maps_path(own.namespace)
        self._name = own.name
        self._may_write = may_write
        self._failed = failed
        self._is_recalled = False
        self._is_failing = False

    async def recall(self) -> bool:
        """Add what earlier leaders wrote, once; return False while it cannot be read.

        What cannot be parsed is left out, and counted as an error.
        """
        if self._is_recalled:
            return True
        try:
            raw = await self._client.get(f"{self._config_maps}/{self._name}")
        except ApiUnavailable as fault:
            if fault.status != 404:
                self._report(ControllerError.BUDGETS_NOT_RECALLED, str(fault))
                return False
            raw = b"{}"
        try:
            unread = self._budgets.recall(msgspec.json.decode(raw, type=_ConfigMap).data or {})
        except msgspec.DecodeError as fault:  # not the API server's answer but a proxy's
            self._report(ControllerError.BUDGETS_NOT_RECALLED, str(fault))
            return False
        if unread:
            told = f"ConfigMap {self._name} has unreadable values of {', '.join(unread)}"
            self._report(ControllerError.BUDGETS_NOT_RECALLED, told)
        self._is_recalled = True
        return True

    async def run(self) -> None:
        """Write changes until cancelled, and a last time then."""
        try:
            while True:
                done = await self.recall() and await self.keep()
                await asyncio.sleep(_WRITTEN_EVERY_S if done else _TRIED_AGAIN_S)
        finally:
            if self._is_recalled:
                await self.keep()

    async def keep(self) -> bool:
        """Write what has changed; return False if that failed, to be tried again."""
        changes = self._budgets.changes()
        if not changes or not self._may_write():
            return True
        meta = {"name": self._name}
        body = msgspec.json.encode({"metadata": meta, "data": changes})
        try:
            await self._patch_or_create(body)
        except ApiUnavailable as fault:
            self._report(ControllerError.BUDGETS_NOT_KEPT, str(fault))
            return False
        self._budgets.written(changes)
        self._is_failing = False
        return True

    async def _patch_or_create(self, body: bytes) -> None:
        try:
            await self._client.patch(f"{self._config_maps}/{self._name}", body)
        except ApiUnavailable as fault:
            if fault.status != 404:
                raise
            await self._client.create(self._config_maps, body)

    def _report(self, error: ControllerError, reason: str) -> None:
        self._failed(error)
        if not self._is_failing:  # once, not every half a minute
            log.warning(
                "the use of budgets is not kept; after a failover their period begins at zero",
                error=str(error),
                reason=reason,
            )
        self._is_failing = True
