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
from greensched_operator.resource_fields import decoded_object, read_meta

log = structlog.get_logger()

_APPLY = "application/apply-patch+yaml"  # JSON is YAML
_MANAGER = "helm"  # so that an upgrade may change what the installation set
_AGAIN_S = 5.0


class DefaultPolicy:
    """Sees that there is one; what a user has made of it is left alone."""

    def __init__(self, file: Path, namespace: str, client: ApiClient) -> None:
        """`file` holds the GreenPolicy as JSON; raises BadInput when it is none."""
        try:
            self._body = file.read_bytes()
        except OSError as fault:
            raise BadInput(f"default_policy_file: {fault}") from fault
        name = read_meta(decoded_object(self._body)).name
        self._path = f"/apis/{GROUP}/{VERSION}/namespaces/{namespace}/{GREEN_POLICIES}/{name}"
        self._client = client

    async def run(self) -> None:
        """Create it, as soon as its kind is known; then wait until cancelled."""
        while True:
            try:
                await self.create()
                break
            except ApiUnavailable as fault:
                log.info("the default GreenPolicy is not there yet", reason=str(fault))
            await asyncio.sleep(_AGAIN_S)
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
