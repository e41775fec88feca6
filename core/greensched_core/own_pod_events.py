"""Warning events of a process on its own pod."""

import structlog

from greensched_core.clock import WallClock
from greensched_core.cluster_settings import ClusterSettings
from greensched_core.errors import ApiUnavailable
from greensched_core.events import event_body
from greensched_core.kubernetes_api import ApiClient

log = structlog.get_logger()


async def warn_by_own_pod(
    client: ApiClient, settings: ClusterSettings, reason: str, note: str
) -> None:
    """Write a Warning event on the pod in the settings, if they name one. Never raises."""
    pod, at_s, component = settings.own_pod(), WallClock().now(), settings.component
    if pod is None:
        return
    body = event_body(pod, reason, note, at_s, component=component, is_warning=True)
    try:
        await client.create(f"/api/v1/namespaces/{pod.namespace}/events", body)
    except ApiUnavailable as fault:
        log.warning("an event on this process's pod could not be written", reason=str(fault))
