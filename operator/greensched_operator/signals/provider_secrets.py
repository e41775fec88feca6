"""Reads the keys of providers from Secrets in the operator's own namespace."""

import base64
import binascii
from collections.abc import Sequence
from urllib.parse import quote

import msgspec

from greensched_core.errors import ApiUnavailable
from greensched_core.kubernetes_api import ApiClient
from greensched_core.labels import PROVIDER_SECRET_TYPE
from greensched_operator.providers.answers import FaultReason, ProviderFault
from greensched_operator.providers.secret_keys import SecretKey

_SHORTEST_HIDDEN = 4  # characters; hiding shorter secrets would garble ordinary words


class _Secret(msgspec.Struct):
    type: str = ""
    data: dict[str, str] | None = None


_decode = msgspec.json.Decoder(_Secret).decode


class ProviderSecrets:
    """Reads only Secrets of type greensched.io/provider.

    The author of a GridSignal chooses which key is sent to which address. The type protects the
    other Secrets of the namespace, such as certificates, from that.
    """

    def __init__(self, api: ApiClient, namespace: str) -> None:
        self._api = api
        self._namespace = namespace

    async def read(self, keys: Sequence[SecretKey]) -> tuple[str, ...]:
        """Return the values of the keys, in order; raise ProviderFault that names a missing one."""
        return tuple([await self._one(key) for key in keys])

    async def _one(self, key: SecretKey) -> str:
        where = f"Secret {self._namespace}/{key.secret}"
        try:
            raw = await self._api.get(f"/api/v1/namespaces/{self._namespace}/secrets/{key.secret}")
            secret = _decode(raw)
        except ApiUnavailable as fault:
            if fault.status in (403, 404):
                raise _missing(
                    f"{where} does not exist, or the operator has no right to read it"
                ) from fault
            raise ProviderFault(
                FaultReason.UNREACHABLE, f"{where} could not be read; it is tried again"
            ) from fault
        except msgspec.DecodeError as fault:
            raise _missing(f"{where}: the API server's answer is no Secret") from fault
        if secret.type != PROVIDER_SECRET_TYPE:
            raise _missing(f"{where} must be of type {PROVIDER_SECRET_TYPE}")
        try:
            value = base64.b64decode((secret.data or {}).get(key.key, "")).decode().strip()
        except (binascii.Error, UnicodeDecodeError) as fault:
            raise _missing(f"{where}: {key.key} is not text") from fault
        if not value or not value.isascii() or not value.isprintable():
            raise _missing(f"{where}: {key.key} is missing, empty or not printable ASCII")
        return value


def _missing(text: str) -> ProviderFault:
    return ProviderFault(FaultReason.UNAUTHORISED, text)


def without_secrets(text: str, secrets: Sequence[str]) -> str:
    """Return `text` with *** for each secret in it, plain or URL-encoded."""
    for secret in secrets:
        if len(secret) >= _SHORTEST_HIDDEN:
            text = text.replace(secret, "***").replace(quote(secret, safe=""), "***")
    return text
