"""A process that cannot get ready says what it waits for: in its log and in an event of its pod."""

import asyncio
import time
from collections.abc import Callable

import structlog

from greensched_core.errors import ApiUnavailable
from greensched_core.kubernetes_api import ApiClient
from greensched_operator.events import Regarded, event_body
from greensched_operator.settings import OperatorSettings

log = structlog.get_logger()

LATE_AFTER_S = 25.0  # so that it is told within 30


async def say_when_late(
    ready: Callable[[], str],
    client: ApiClient,
    settings: OperatorSettings,
    *,
    after_s: float = LATE_AFTER_S,
) -> None:
    """Tell once what a process waits for that is not ready by then; `ready` returns "" or that."""
    await asyncio.sleep(after_s)
    wrong = ready()
    if not wrong:
        return
    log.error("not ready", after_s=after_s, reason=wrong)
    if not settings.pod_name:
        return
    try:
        events = f"/api/v1/namespaces/{settings.namespace}/events"
        await client.create(events, _event(settings, f"not ready after {after_s:g} s: {wrong}"))
    except ApiUnavailable as fault:
        log.warning("no event could be written", reason=str(fault))


def _event(settings: OperatorSettings, note: str) -> bytes:
    pod = Regarded("v1", "Pod", settings.namespace, settings.pod_name, settings.pod_uid)
    return event_body(pod, "NotReady", note, time.time(), is_warning=True)
