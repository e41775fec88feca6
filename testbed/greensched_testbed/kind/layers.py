"""Images in the form of `docker save`, written without any engine."""

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
_QUICKLY = 1  # of gzip: programs shrink to a third all the same


@dataclass(frozen=True)
class LayerEntry:
    """A file of a layer; or a folder, with neither content nor target; or a link to a target."""

    name: str
    content: bytes | Path | None = None
    mode: int = 0o644
    target: str = ""


@dataclass(frozen=True)
class Layer:
    """A layer on disk, and the hash of it unpacked."""

    path: Path
    unpacked_sha256: str


def write_layer(entries: Iterable[LayerEntry], path: Path) -> Layer:
    """Write a layer of these entries."""
    with tarfile.open(path, "w") as tar:
        for entry in entries:
            _add(tar, entry)
    return layer_at(path)


def layer_at(path: Path) -> Layer:
    """Return the layer that a plain tar file is."""
    with path.open("rb") as tar:
        return Layer(path, hashlib.file_digest(tar, "sha256").hexdigest())


def compressed(layer: Layer) -> Layer:
    """Return the layer written anew, as small as nodes should store it."""
    path = layer.path.with_suffix(".tar.gz")
    with layer.path.open("rb") as plain, gzip.open(path, "wb", _QUICKLY) as packed:
        while block := plain.read(1 << 20):
            packed.write(block)
    return Layer(path, layer.unpacked_sha256)


def write_image(
    path: Path, names: Sequence[str], settings: Mapping[str, object], layers: Sequence[Layer]
) -> None:
    """Write an image that `docker load` and containerd take; `settings` as the OCI names them."""
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
