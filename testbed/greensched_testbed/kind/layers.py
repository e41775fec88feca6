"""Writes images in the format of `docker save`, without an engine."""

import gzip
import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_QUICKLY = 1  # gzip level: programs still shrink to a third


@dataclass(frozen=True)
class LayerEntry:
    """A file of a layer, a link to a target, or a folder (neither content nor target)."""

    name: str
    content: bytes | Path | None = None
    mode: int = 0o644
    target: str = ""


@dataclass(frozen=True)
class Layer:
    """A layer on disk, and the hash of its unpacked content."""

    path: Path
    unpacked_sha256: str


def write_layer(entries: Iterable[LayerEntry], path: Path) -> Layer:
    """Write a layer of these entries."""
    with tarfile.open(path, "w") as tar:
        for entry in entries:
            _add(tar, entry)
    return layer_at(path)


def layer_at(path: Path) -> Layer:
    """Return an uncompressed tar file as a layer."""
    with path.open("rb") as tar:
        return Layer(path, hashlib.file_digest(tar, "sha256").hexdigest())


def compressed_layer(layer: Layer) -> Layer:
    """Return a compressed copy of the layer, which saves space on nodes."""
    path = layer.path.with_suffix(".tar.gz")
    with layer.path.open("rb") as plain, gzip.open(path, "wb", _QUICKLY) as packed:
        while block := plain.read(1 << 20):
            packed.write(block)
    return Layer(path, layer.unpacked_sha256)


def write_image(
    path: Path, names: Sequence[str], settings: Mapping[str, object], layers: Sequence[Layer]
) -> None:
    """Write an image for `docker load` and containerd; `settings`: OCI image configuration."""
    machine = platform.machine()
    config = json.dumps(
        {
            "architecture": _ARCHITECTURES.get(machine, machine),
            "os": "linux",
            "config": settings,
            "rootfs": {
                "type": "layers",
                "diff_ids": [f"sha256:{layer.unpacked_sha256}" for layer in layers],
            },
            "history": [],
        }
    ).encode()
    name = f"{hashlib.sha256(config).hexdigest()}.json"
    members = [f"{place}.tar" for place, _ in enumerate(layers)]
    manifest = [{"Config": name, "RepoTags": list(names), "Layers": members}]
    with tarfile.open(path, "w") as tar:
        _add(tar, LayerEntry(name, config))
        for member, layer in zip(members, layers, strict=True):
            _add(tar, LayerEntry(member, layer.path))
        _add(tar, LayerEntry("manifest.json", json.dumps(manifest).encode()))


def _add(tar: tarfile.TarFile, entry: LayerEntry) -> None:
    info = tarfile.TarInfo(entry.name)
    info.mode = entry.mode
    if entry.target:
        info.type, info.linkname = tarfile.SYMTYPE, entry.target
        tar.addfile(info)
    elif entry.content is None:
        info.type, info.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(info)
    elif isinstance(entry.content, bytes):
        info.size = len(entry.content)
        tar.addfile(info, io.BytesIO(entry.content))
    else:
        info.size = entry.content.stat().st_size
        with entry.content.open("rb") as content:
            tar.addfile(info, content)
