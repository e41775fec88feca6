"""Which certificates the API server trusts of the webhook: what its configuration says."""

import base64
import binascii

import msgspec

from greensched_operator.webhook.certificate import certificates_in


class _ClientConfig(msgspec.Struct, frozen=True):
    caBundle: str = ""


class ConfiguredWebhook(msgspec.Struct, frozen=True):
    """A webhook of a configuration, read as far as trust goes."""

    name: str
    clientConfig: _ClientConfig = msgspec.field(default_factory=_ClientConfig)

    def trusted(self) -> tuple[bytes, ...]:
        """Return the certificates (PEM) that the API server trusts of it."""
        try:
            return certificates_in(base64.b64decode(self.clientConfig.caBundle))
        except binascii.Error:
            return ()


class Configuration(msgspec.Struct, frozen=True):
    """A MutatingWebhookConfiguration, likewise."""

    webhooks: list[ConfiguredWebhook] | None = None

    def trusts(self, bundle: bytes) -> bool:
        """Return whether the API server trusts all of a bundle (PEM) of each of its webhooks."""
        wanted = set(certificates_in(bundle))
        return all(wanted <= set(each.trusted()) for each in self.webhooks or ())

    def trusted_beside(self, bundle: bytes) -> tuple[bytes, ...]:
        """Return what the API server trusts of any of its webhooks, and a bundle does not hold."""
        trusted = dict.fromkeys(one for each in self.webhooks or () for one in each.trusted())
        return tuple(each for each in trusted if each not in certificates_in(bundle))


decode_configuration = msgspec.json.Decoder(Configuration).decode


class Trust:
    """Follows one configuration; a sink for `greensched_core.watching.Watch`."""

    def __init__(self) -> None:
        self._found: Configuration | None = None
        self._is_listed = False

    def trusts(self, certificate: bytes) -> bool:
        """Return whether the API server calls a webhook that has this certificate (PEM)."""
        return self._found is not None and self._found.trusts(certificate)

    def list_began(self) -> None:
        """A list of one configuration, or of none, follows."""
        self._is_listed = False

    def list_ended(self) -> None:
        """Without a configuration nobody calls."""
        if not self._is_listed:
            self._found = None

    def upsert(self, item: Configuration) -> None:
        """The configuration is there or has changed."""
        self._is_listed, self._found = True, item

    def remove(self, item: Configuration) -> None:
        """The configuration is gone."""
        self._found = None
