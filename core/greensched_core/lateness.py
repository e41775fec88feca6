"""A process that cannot get ready says what it waits for: in its log and in an event of its pod."""

import asyncio
from collections.abc import Callable

import structlog

from greensched_core.cluster_settings import ClusterSettings
from greensched_core.kubernetes_api import ApiClient
from greensched_core.own_pod_events import warn_by_own_pod

log = structlog.get_logger()

LATE_AFTER_S = 25.0  # so that it is told within 30


async def say_when_late(
    ready: Callable[[], str],
    client: ApiClient,
    settings: ClusterSettings,
    *,
    after_s: float = LATE_AFTER_S,
) -> None:
    """Tell once what a process waits for that is not ready by then; `ready` returns "" or that.

    Without a pod in its settings the log alone tells.
    """
    await asyncio.sleep(after_s)
    wrong = ready()
    if not wrong:
        return
    log.error("not ready", after_s=after_s, reason=wrong)
    note = f"not ready after {after_s:g} s: {wrong}"
    await warn_by_own_pod(client, settings, "NotReady", note)
