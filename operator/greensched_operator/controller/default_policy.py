"""Creates the GreenPolicy that an installation begins with, as the leader.

A chart that brings the definitions of our resources cannot bring an object of them in the same
installation: Helm looks each kind up before it creates the first. From the first upgrade on the
chart keeps this object itself; it is therefore written in the chart's words, as Helm would.
"""

import asyncio
from pathlib import Path

import structlog

from greensched_core.errors import ApiUnavailable, BadInput
from greensched_core.kubernetes_api import ApiClient
from greensched_core.labels import GREEN_POLICIES, GROUP, VERSION
from greensched_core.own_pod_events import warn_by_own_pod
from greensched_operator.objects.resource_fields import decoded_object, read_meta
from greensched_operator.runtime.settings import OperatorSettings

log = structlog.get_logger()

_APPLY = "application/apply-patch+yaml"  # JSON is YAML
_MANAGER = "helm"  # so that an upgrade may change what the installation set
_AGAIN_S = 5.0
POLICY_REFUSED = "PolicyRefused"  # the reason of the event
_MAY_PASS = (404, 408, 409, 429)  # no such kind yet, late, somebody else's write, too many calls


class DefaultPolicy:
    """Sees that there is one; what a user has made of it is left alone."""

    def __init__(self, file: Path, settings: OperatorSettings, client: ApiClient) -> None:
        """`file` holds the GreenPolicy as JSON; raises BadInput when it is none."""
        try:
            self._body = file.read_bytes()
        except OSError as fault:
            raise BadInput(f"default_policy_file: {fault}") from fault
        name = read_meta(decoded_object(self._body)).name
        kind = f"/apis/{GROUP}/{VERSION}/namespaces/{settings.namespace}/{GREEN_POLICIES}"
        self._path = f"{kind}/{name}"
        self._settings = settings
        self._client = client
        self._told = ""  # of why it was refused

    async def run(self, *, again_s: float = _AGAIN_S) -> None:
        """Create it, as soon as its kind is known; then wait until cancelled."""
        while True:
            try:
                await self.create()
                break
            except ApiUnavailable as fault:
                await self._tell(fault)
            await asyncio.sleep(again_s)
        await asyncio.Event().wait()  # a task that ends has failed

    async def create(self) -> bool:
        """Create it where there is none, and tell whether; raises ApiUnavailable."""
        try:
            await self._client.get(self._path)
        except ApiUnavailable as fault:
            if fault.status != 404:
                raise
        else:
            return False
        await self._client.patch(f"{self._path}?fieldManager={_MANAGER}", self._body, _APPLY)
        log.info("GreenPolicy created", path=self._path)
        return True

    async def _tell(self, fault: ApiUnavailable) -> None:
        """Warn of a refusal once; what may pass is no more than a line in the log."""
        reason = str(fault)
        if fault.status is None or fault.status in _MAY_PASS or fault.status >= 500:
            log.info(
                "the default GreenPolicy could not be created yet; trying again", reason=reason
            )
        elif reason != self._told:
            self._told = reason
            log.warning(
                "the API server refused the default GreenPolicy; the built-in one applies",
                reason=reason,
            )
            note = (
                f"the API server refused the GreenPolicy of the chart's values: {reason}. The "
                "built-in policy applies (mode shadow: nothing is held). Correct policy.spec in "
                "the values and run helm upgrade"
            )
            await warn_by_own_pod(self._client, self._settings, POLICY_REFUSED, note)
