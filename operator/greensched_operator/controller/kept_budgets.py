"""Keeps the use of budgets in a ConfigMap, from which the next leader goes on."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import msgspec
import structlog

from greensched_core.clock import Clock
from greensched_core.errors import ApiUnavailable
from greensched_core.kubernetes_api import ApiClient
from greensched_operator.planning.budgets import Budgets
from greensched_operator.writing.metrics import ControllerError

log = structlog.get_logger()

_WRITTEN_EVERY_S = 2.0  # wall seconds: what a killed leader has started since then is not counted
_TRIED_AGAIN_S, _LONGEST_PAUSE_S = 1.0, 30.0
_WAITED_FOR_S = 10.0  # by planning, which would otherwise take budgets for unspent
_TEXTS = {
    ControllerError.BUDGETS_NOT_RECALLED: "the use of budgets could not be read: periods begin at "
    "zero until it can",
    ControllerError.BUDGETS_NOT_KEPT: "the use of budgets could not be written: the next leader "
    "goes on with an earlier one",
}


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] | None = None


class KeptBudgets:
    """Reads the use of budgets once, and writes it whenever it has changed.

    The chart makes the ConfigMap: with the right to create any, this process could make the one
    that starts the emergency release.
    """

    def __init__(
        self,
        budgets: Budgets,
        client: ApiClient,
        path: str,
        clock: Clock,
        may_write: Callable[[], bool],
        failed: Callable[[ControllerError], None],
    ) -> None:
        """`path` is the ConfigMap's in the API.

        `may_write` returns whether this replica leads; `failed` counts an error.
        """
        self._budgets = budgets
        self._client, self._path = client, path
        self._clock = clock
        self._may_write = may_write
        self._failed = failed
        self._is_recalled = asyncio.Event()
        self._is_written = False  # all of it, by this process
        self._failing: set[ControllerError] = set()

    async def recalled(self) -> None:
        """Wait until `run` has read what earlier leaders wrote, but no longer than ten seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_WAITED_FOR_S):
                await self._is_recalled.wait()

    async def recall(self) -> bool:
        """Add what earlier leaders wrote, once; return False while it cannot be read.

        What cannot be parsed is left out, and counted as an error.
        """
        if self._is_recalled.is_set():
            return True
        try:
            raw = await self._client.get(self._path)
        except ApiUnavailable as fault:
            if fault.status != 404:
                self._report(ControllerError.BUDGETS_NOT_RECALLED, str(fault))
                return False
            raw = b"{}"
        try:
            data = msgspec.json.decode(raw, type=_ConfigMap).data or {}
            unread = self._budgets.recall(data, self._clock.now())
        except (msgspec.DecodeError, UnicodeDecodeError) as fault:  # a proxy's answer
            self._report(ControllerError.BUDGETS_NOT_RECALLED, str(fault))
            return False
        self._failing.discard(ControllerError.BUDGETS_NOT_RECALLED)
        if unread:
            told = f"{self._path} has unreadable values of {', '.join(unread)}"
            self._report(ControllerError.BUDGETS_NOT_RECALLED, told)
        self._is_recalled.set()
        return True

    async def run(self) -> None:
        """Write changes until cancelled, and a last time then."""
        pause_s = _TRIED_AGAIN_S
        try:
            while True:
                if await self.recall() and await self.keep():
                    pause_s = _TRIED_AGAIN_S
                    await asyncio.sleep(_WRITTEN_EVERY_S)
                else:
                    await asyncio.sleep(pause_s)
                    pause_s = min(2.0 * pause_s, _LONGEST_PAUSE_S)
        finally:
            if self._is_recalled.is_set():
                await self.keep()

    async def keep(self) -> bool:
        """Write what has changed; return False if that failed, to be tried again."""
        changes = self._budgets.changes()
        if not changes or not self._may_write():
            return True
        # A use that somebody has deleted comes back when writing succeeds again.
        known = {} if self._is_written else self._budgets.everything()
        body = msgspec.json.encode({"data": {**changes, **known}})
        try:
            await self._client.patch(self._path, body)
        except ApiUnavailable as fault:
            missing = "; `helm upgrade` makes it again" if fault.status == 404 else ""
            self._report(ControllerError.BUDGETS_NOT_KEPT, f"{fault}{missing}")
            self._is_written = False
            return False
        self._is_written = True
        self._budgets.written(changes)
        self._failing.discard(ControllerError.BUDGETS_NOT_KEPT)
        return True

    def _report(self, error: ControllerError, reason: str) -> None:
        self._failed(error)
        if error not in self._failing:  # once, not at each try
            log.warning(_TEXTS[error], reason=reason)
        self._failing.add(error)
