"""Creates the default GreenPolicy of a new installation, as the leader.

A chart cannot install a CRD and an object of it at once: Helm looks up each kind before it creates
the first object. From the first upgrade on, the chart owns this object. Therefore it is created
with the chart's content and Helm's field manager.
"""

import asyncio
from pathlib import Path

import structlog

from greensched_core.custom_resources.policy_lookup import green_policies_in
from greensched_core.errors import ApiUnavailable, BadInput
from greensched_core.kubernetes_api import ApiClient
from greensched_core.own_pod_events import warn_by_own_pod
from greensched_operator.objects.resource_fields import decoded_object, read_meta
from greensched_operator.runtime.settings import OperatorSettings

log = structlog.get_logger()

_APPLY = "application/apply-patch+yaml"  # JSON is YAML
_MANAGER = "helm"  # so that an upgrade may change what the installation set
_AGAIN_S = 5.0
POLICY_REFUSED = "PolicyRefused"  # the reason of the event
_MAY_PASS = (404, 408, 409, 429)  # no such kind yet, timeout, write conflict, too many requests


class DefaultPolicy:
    """Creates the default GreenPolicy if it is missing; never changes an existing one."""

    def __init__(self, file: Path, settings: OperatorSettings, client: ApiClient) -> None:
        """Read the GreenPolicy from `file`, as JSON; raises BadInput if that fails."""
        try:
            self._body = file.read_bytes()
        except OSError as fault:
            raise BadInput(f"default_policy_file: {fault}") from fault
        try:
            name = read_meta(decoded_object(self._body)).name
        except BadInput as fault:
            raise BadInput(f"default_policy_file {file}: {fault}") from None
        self._path = f"{green_policies_in(settings.namespace)}/{name}"
        self._settings = settings
        self._client = client
        self._reported = ""  # the last refusal

    async def run(self, *, again_s: float = _AGAIN_S) -> None:
        """Create it as soon as the API server knows its kind; then wait until cancelled."""
        while True:
            try:
                await self.create()
                break
            except ApiUnavailable as fault:
                await self._report(fault)
            await asyncio.sleep(again_s)
        await asyncio.Event().wait()  # a task that ends counts as failed

    async def create(self) -> bool:
        """Create it if it is missing; return whether it was. Raises ApiUnavailable."""
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

    async def _report(self, fault: ApiUnavailable) -> None:
        """Warn of a refusal once; only log a fault that may pass."""
        reason = str(fault)
        if fault.status is None or fault.status in _MAY_PASS or fault.status >= 500:
            log.info(
                "the default GreenPolicy could not be created yet; trying again", reason=reason
            )
        elif reason != self._reported:
            self._reported = reason
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
