"""Reads which of the webhook's certificates the API server trusts, from its configuration."""

import base64
import binascii

import msgspec

from greensched_operator.webhook.certificate import certificates_in


class _ClientConfig(msgspec.Struct, frozen=True):
    caBundle: str = ""


class ConfiguredWebhook(msgspec.Struct, frozen=True):
    """A webhook of a configuration, with the fields that decide trust."""

    name: str
    clientConfig: _ClientConfig = msgspec.field(default_factory=_ClientConfig)

    def trusted(self) -> tuple[bytes, ...]:
        """Return the certificates (PEM) that the API server trusts for this webhook."""
        try:
            return certificates_in(base64.b64decode(self.clientConfig.caBundle))
        except binascii.Error:
            return ()


class Configuration(msgspec.Struct, frozen=True):
    """A MutatingWebhookConfiguration, with the fields that decide trust."""

    webhooks: list[ConfiguredWebhook] | None = None

    def trusts(self, bundle: bytes) -> bool:
        """Return whether the API server trusts all of a bundle (PEM) for each of the webhooks."""
        wanted = set(certificates_in(bundle))
        return all(wanted <= set(each.trusted()) for each in self.webhooks or ())

    def other_trusted(self, bundle: bytes) -> tuple[bytes, ...]:
        """Return the certificates trusted for any of the webhooks that are not in a bundle."""
        trusted = dict.fromkeys(one for each in self.webhooks or () for one in each.trusted())
        return tuple(each for each in trusted if each not in certificates_in(bundle))


decode_configuration = msgspec.json.Decoder(Configuration).decode


class Trust:
    """Follows one configuration; a sink for `greensched_core.watching.Watch`."""

    def __init__(self) -> None:
        self._found: Configuration | None = None
        self._is_listed = False

    def trusts(self, certificate: bytes) -> bool:
        """Return whether the API server trusts a webhook that serves this certificate (PEM)."""
        return self._found is not None and self._found.trusts(certificate)

    def list_began(self) -> None:
        """Begin a list of one configuration or none."""
        self._is_listed = False

    def list_ended(self) -> None:
        """Forget the configuration if the list does not contain it."""
        if not self._is_listed:
            self._found = None

    def upsert(self, item: Configuration) -> None:
        """Store the added or changed configuration."""
        self._is_listed, self._found = True, item

    def remove(self, item: Configuration) -> None:
        """Forget the deleted configuration."""
        self._found = None
