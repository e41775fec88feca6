"""Reports why a process is not ready: in its log and in an event on its pod."""

import asyncio
from collections.abc import Callable

import structlog

from greensched_core.cluster_settings import ClusterSettings
from greensched_core.kubernetes_api import ApiClient
from greensched_core.own_pod_events import warn_by_own_pod

log = structlog.get_logger()

LATE_AFTER_S = 25.0  # so that the report comes within 30 s


async def say_when_late(
    ready: Callable[[], str],
    client: ApiClient,
    settings: ClusterSettings,
    *,
    after_s: float = LATE_AFTER_S,
) -> None:
    """Report once why a process is not ready after `after_s` seconds.

    `ready` returns the reason, or "" when ready. Without a pod in the settings only the log has it.
    """
    await asyncio.sleep(after_s)
    reason = ready()
    if not reason:
        return
    log.error("not ready", after_s=after_s, reason=reason)
    note = f"not ready after {after_s:g} s: {reason}"
    await warn_by_own_pod(client, settings, "NotReady", note)
