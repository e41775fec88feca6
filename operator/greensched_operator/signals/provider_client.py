"""Asks any provider for values: over the web, from a file, or from the static table."""

import asyncio
from pathlib import Path

import structlog

from greensched_core.clock import Clock
from greensched_core.signals.static import StaticZones
from greensched_core.signals.steps import SignalKind
from greensched_operator.providers import file, static
from greensched_operator.providers.answers import Answer, FaultReason, ProviderFault
from greensched_operator.providers.catalogue import Provider
from greensched_operator.providers.file import File
from greensched_operator.providers.json_endpoint import JsonEndpoint
from greensched_operator.providers.static import Static
from greensched_operator.signals.provider_secrets import ProviderSecrets, without_secrets
from greensched_operator.signals.web import Web

log = structlog.get_logger()

_FILE_TIMEOUT_S = 30.0


class ProviderClient:
    """Asks every kind of provider; a provider's rate limit applies to all its zones."""

    def __init__(
        self,
        web: Web,
        secrets: ProviderSecrets,
        clock: Clock,
        table: StaticZones,
        folder: Path | None,
    ) -> None:
        """`folder` has the files of file providers; None means no folder."""
        self._web = web
        self._secrets = secrets
        self._clock = clock
        self._table = table
        self._folder = folder
        self._rests_until: dict[str, float] = {}  # by provider's name, epoch seconds

    async def ask(self, provider: Provider, kind: SignalKind, zone: str) -> Answer:
        """Return a provider's answer; raise ProviderFault, which contains no secret."""
        self._refuse_while_limited(provider)
        secrets: tuple[str, ...] = ()
        try:
            secrets = await self._secrets.read(provider.secret_keys())
            return await self._ask(provider, kind, zone, secrets)
        except ProviderFault as fault:
            if fault.reason is FaultReason.RATE_LIMITED and not isinstance(provider, JsonEndpoint):
                rest_s = fault.retry_after_s or 0.0
                self._rests_until[provider.name] = self._clock.now() + rest_s
            message = without_secrets(str(fault), secrets)
            raise ProviderFault(
                fault.reason, message, retry_after_s=fault.retry_after_s
            ) from None  # the cause may contain a secret
        except Exception as fault:  # noqa: BLE001 - a bug in a reader: the next provider serves
            log.error(
                "a provider's answer could not be read",
                provider=provider.name,
                error=type(fault).__name__,
            )
            message = f"the answer could not be read ({type(fault).__name__})"
            raise ProviderFault(FaultReason.GARBAGE, message) from None

    def _refuse_while_limited(self, provider: Provider) -> None:
        left_s = self._rests_until.get(provider.name, 0.0) - self._clock.now()
        if left_s > 0:
            message = "waiting: a request for another zone reached the rate limit"
            raise ProviderFault(FaultReason.RATE_LIMITED, message, retry_after_s=left_s)

    async def _ask(
        self, provider: Provider, kind: SignalKind, zone: str, secrets: tuple[str, ...]
    ) -> Answer:
        now = self._clock.now()
        if isinstance(provider, Static):
            return static.read(provider, zone, self._table, kind, now)
        if isinstance(provider, File):
            return await self._from_file(provider, kind, now)
        if isinstance(provider, JsonEndpoint):
            return await self._web.converse(provider.name, provider.ask_for(kind, secrets))
        return await self._web.converse(provider.name, provider.ask(now, secrets))

    async def _from_file(self, provider: File, kind: SignalKind, now: float) -> Answer:
        try:
            async with asyncio.timeout(_FILE_TIMEOUT_S):
                return await asyncio.to_thread(file.read, provider, self._folder, kind, now)
        except TimeoutError:
            slow = f"{provider.path} was not read within {_FILE_TIMEOUT_S:g} s"
            raise ProviderFault(FaultReason.UNREACHABLE, slow) from None
