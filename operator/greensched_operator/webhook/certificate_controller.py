"""Keeps the webhook's certificate in its Secret, and trusted by the API server, as the leader."""

import asyncio
import base64

import msgspec
import structlog

from greensched_core.api_paths import CONFIGURATIONS
from greensched_core.clock import Clock
from greensched_core.errors import ApiUnavailable, BadInput
from greensched_core.kubernetes_api import STRATEGIC_MERGE_PATCH, ApiClient
from greensched_operator.runtime.settings import OperatorSettings
from greensched_operator.webhook.certificate import (
    Pair,
    certificates_in,
    has_spread,
    new_pair,
    read_secret,
    secret_body,
    serves,
)
from greensched_operator.webhook.trust import Configuration, decode_configuration

log = structlog.get_logger()

CERTIFICATE_LOOKS_EVERY_S = (
    10.0  # a chart upgrade may empty what we wrote, and then nothing is held
)
TRIED_AGAIN_AFTER_S = 2.0  # without a certificate nothing is held
_MOST_OLD = 2  # each refused write of the Secret leaves a trusted certificate that is never served


class CertificateController:
    """Creates the certificate, and makes the API server trust it before it is served."""

    def __init__(self, settings: OperatorSettings, client: ApiClient, clock: Clock) -> None:
        """Take the wall `clock`: others check the certificates' dates by it."""
        self._settings = settings
        self._client = client
        self._clock = clock
        self._secrets = f"/api/v1/namespaces/{settings.namespace}/secrets"
        self._configuration = f"{CONFIGURATIONS}/{settings.webhook_configuration}"

    async def run(self) -> None:
        """Check every few seconds, until cancelled."""
        while True:
            pause_s = CERTIFICATE_LOOKS_EVERY_S
            try:
                await self.look()
            except ApiUnavailable as fault:
                log.warning(
                    "the webhook's certificate could not be checked; trying again",
                    reason=str(fault),
                )
                pause_s = TRIED_AGAIN_AFTER_S
            await asyncio.sleep(pause_s)

    async def look(self) -> None:
        """Renew a missing, foreign or expiring certificate; raises ApiUnavailable."""
        settings, now_s = self._settings, self._clock.now()
        exists, pair = await self._stored()
        found = decode_configuration(await self._client.get(self._configuration))
        if pair is not None and serves(pair, settings.webhook_hosts, now_s):
            await self._keep_trusted(found, pair, now_s)
            return
        fresh = new_pair(settings.webhook_hosts, now_s)
        # Replicas serve an old pair until they see the new one, even if its Secret is gone.
        stored = pair.cert if pair is not None else b""
        await self._trust(found, fresh.cert, stored, *found.other_trusted(stored)[-_MOST_OLD:])
        body = secret_body(settings.webhook_secret, settings.namespace, fresh)
        if exists:
            await self._client.patch(f"{self._secrets}/{settings.webhook_secret}", body)
        else:
            await self._client.create(self._secrets, body)
        log.info(
            "certificate created", secret=settings.webhook_secret, hosts=settings.webhook_hosts
        )

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
            log.warning("the webhook's Secret is unusable; creating a new one", reason=str(fault))
            return True, None

    async def _keep_trusted(self, found: Configuration, pair: Pair, now_s: float) -> None:
        """Make the API server trust a pair, and only it once all replicas serve it."""
        older = found.other_trusted(pair.cert)
        if not found.trusts(pair.cert):
            await self._trust(found, pair.cert, *older[-_MOST_OLD:])
        elif older and has_spread(pair, now_s):
            await self._trust(found, pair.cert)
            log.info("older certificates are no longer trusted", count=len(older))

    async def _trust(self, found: Configuration, *bundles: bytes) -> None:
        wanted = dict.fromkeys(each for bundle in bundles for each in certificates_in(bundle))
        bundle = base64.b64encode(b"".join(wanted)).decode()
        webhooks = [
            {"name": each.name, "clientConfig": {"caBundle": bundle}}
            for each in found.webhooks or ()
        ]
        body = msgspec.json.encode({"webhooks": webhooks})
        await self._client.patch(self._configuration, body, STRATEGIC_MERGE_PATCH)
