"""A bundle in a ConfigMap, as operator and extender read and load it."""

import tempfile
from base64 import b64decode
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from greensched_policies.learned.bundle import Bundle, load_bundle
from greensched_policies.learned.card import CARD_FILE, BundleError


class _Meta(msgspec.Struct):
    name: str


class ConfigMapObject(msgspec.Struct):
    """A ConfigMap in the API server's format."""

    metadata: _Meta
    binaryData: dict[str, str] | None = None
    data: dict[str, str] | None = None


decode_config_map = msgspec.json.Decoder(ConfigMapObject).decode


def bundle_files(item: ConfigMapObject) -> Mapping[str, bytes]:
    """Return a ConfigMap's files by name; none if it has no card, so is no bundle.

    Raises ValueError for `binaryData` that is not base64.
    """
    files = {name: b64decode(text) for name, text in (item.binaryData or {}).items()}
    files |= {name: text.encode() for name, text in (item.data or {}).items()}
    return files if CARD_FILE in files else {}


def load_files(files: Mapping[str, bytes], needs: Sequence[str]) -> Bundle:
    """Return the bundle in these files, with the heads that are needed; raise BundleError."""
    with tempfile.TemporaryDirectory(prefix="greensched-bundle-") as folder:
        for name, content in files.items():
            (Path(folder) / Path(name).name).write_bytes(content)
        try:
            return load_bundle(Path(folder), needs=needs)
        except BundleError as fault:
            raise BundleError(str(fault).removeprefix(f"{folder}/")) from None
