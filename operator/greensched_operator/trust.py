"""Which certificates the API server trusts of the webhook: what its configuration says."""

import base64
import binascii

import msgspec


class _ClientConfig(msgspec.Struct, frozen=True):
    caBundle: str = ""


class ConfiguredWebhook(msgspec.Struct, frozen=True):
    """A webhook of a configuration, read as far as trust goes."""

    name: str
    clientConfig: _ClientConfig = msgspec.field(default_factory=_ClientConfig)

    def trusts(self, bundle: bytes) -> bool:
        """Tell whether the API server trusts all of a bundle (PEM) of it."""
        try:
            return bundle in base64.b64decode(self.clientConfig.caBundle)
        except binascii.Error:
            return False


class Configuration(msgspec.Struct, frozen=True):
    """A MutatingWebhookConfiguration, likewise."""

    webhooks: list[ConfiguredWebhook] | None = None

    def trusts(self, bundle: bytes) -> bool:
        """Tell whether the API server trusts all of a bundle (PEM) of each of its webhooks."""
        return all(each.trusts(bundle) for each in self.webhooks or ())


decode_configuration = msgspec.json.Decoder(Configuration).decode


class Trust:
    """Follows one configuration; a sink for `greensched_core.watching.Watch`."""

    def __init__(self) -> None:
        self._found: Configuration | None = None
        self._is_listed = False

    def trusts(self, certificate: bytes) -> bool:
        """Tell whether the API server calls a webhook that has this certificate (PEM)."""
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
