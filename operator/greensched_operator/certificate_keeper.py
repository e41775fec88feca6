"""Keeps the webhook's Secret filled and the API server's trust in it, as the leader."""

import asyncio
import base64

import msgspec
import structlog

from greensched_core.api_paths import CONFIGURATIONS
from greensched_core.clock import Clock
from greensched_core.errors import ApiUnavailable, BadInput
from greensched_core.kubernetes_api import STRATEGIC_MERGE_PATCH, ApiClient
from greensched_operator.certificate import (
    Pair,
    is_certificate,
    new_pair,
    read_secret,
    secret_body,
    serves,
)
from greensched_operator.settings import OperatorSettings
from greensched_operator.trust import decode_configuration

log = structlog.get_logger()

LOOKS_EVERY_S = 10.0  # an upgrade of the chart may have emptied what we wrote; nothing is held then
TRIED_AGAIN_AFTER_S = 2.0  # without a certificate nothing is held


class CertificateKeeper:
    """Makes the certificate, and has the API server trust it before it is served."""

    def __init__(self, settings: OperatorSettings, client: ApiClient, clock: Clock) -> None:
        """`clock` is the wall's: certificates are checked by others."""
        self._settings = settings
        self._client = client
        self._clock = clock
        self._secrets = f"/api/v1/namespaces/{settings.namespace}/secrets"

    async def run(self) -> None:
        """Look every few seconds, until cancelled."""
        while True:
            pause_s = LOOKS_EVERY_S
            try:
                await self.look()
            except ApiUnavailable as fault:
                log.warning("the webhook's certificate could not be kept", reason=str(fault))
                pause_s = TRIED_AGAIN_AFTER_S
            await asyncio.sleep(pause_s)

    async def look(self) -> None:
        """Renew what is missing, foreign or near its end; raises ApiUnavailable."""
        settings = self._settings
        exists, pair = await self._stored()
        if pair is not None and serves(pair, settings.webhook_hosts, self._clock.now()):
            await self._trust(pair.cert)
            return
        fresh = new_pair(settings.webhook_hosts, self._clock.now())
        # The old one is served until every replica has seen the new one.
        old = pair.cert if pair is not None and is_certificate(pair.cert) else b""
        await self._trust(fresh.cert + old)
        body = secret_body(settings.webhook_secret, settings.namespace, fresh)
        if exists:
            await self._client.patch(f"{self._secrets}/{settings.webhook_secret}", body)
        else:
            await self._client.create(self._secrets, body)
        log.info("certificate made", secret=settings.webhook_secret, hosts=settings.webhook_hosts)

    async def _stored(self) -> tuple[bool, Pair | None]:
        try:
            raw = await self._client.get(f"{self._secrets}/{self._settings.webhook_secret}")
        except ApiUnavailable as fault:
            if fault.status == 404:
                return False, None
            raise
        try:
            return True, read_secret(raw)
        except BadInput as fault:
            log.warning("the webhook's Secret is made anew", reason=str(fault))
            return True, None

    async def _trust(self, bundle: bytes) -> None:
        """Have the API server trust a bundle; where all webhooks do, nothing is written."""
        path = f"{CONFIGURATIONS}/{self._settings.webhook_configuration}"
        found = decode_configuration(await self._client.get(path))
        if found.trusts(bundle):
            return
        wanted = base64.b64encode(bundle).decode()
        webhooks = [
            {"name": each.name, "clientConfig": {"caBundle": wanted}}
            for each in found.webhooks or ()
        ]
        body = msgspec.json.encode({"webhooks": webhooks})
        await self._client.patch(path, body, STRATEGIC_MERGE_PATCH)
