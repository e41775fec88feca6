"""Builds images of one program and its libraries each, FROM scratch and without an engine.

The same program gives the same archive to the byte. An archive is written only once.
"""

import hashlib
import io
import json
import platform
import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path

from greensched_testbed.binaries import (
    KUBERNETES_VERSION,
    control_plane_programs,
    prometheus_program,
)
from greensched_testbed.errors import BuildFailed
from greensched_testbed.real_nodes.node_configuration import PAUSE_IMAGE
from greensched_testbed.scaphandre import SCAPHANDRE_RELEASE as SCAPHANDRE_VERSION
from greensched_testbed.scaphandre import libraries_of, scaphandre_program

# The examples' image: nodes without a registry have our image under that name.
_BUSYBOX = "docker.io/library/busybox:1.37"
SHELL_IMAGE = "localhost/greensched-e2e-shell:1"
SCAPHANDRE_IMAGE = f"localhost/greensched-e2e-scaphandre:{SCAPHANDRE_VERSION}"
PROMETHEUS_IMAGE = "localhost/greensched-e2e-prometheus:1"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
# As process 1 a shell handles only signals that it traps.
_UNTIL_ASKED = "trap exit TERM INT; while :; do sleep 3600 & wait; done"


@dataclass(frozen=True)
class ProgramImage:
    """An image: names, program, links to the program, command, and libraries by path."""

    names: tuple[str, ...]
    program: Path
    path: str
    links: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    entrypoint: tuple[str, ...] = ()
    libraries: tuple[Path, ...] = ()


def scheduler_image() -> ProgramImage:
    """Return the image of the chart's scheduler, under upstream's name."""
    return ProgramImage(
        names=(f"registry.k8s.io/kube-scheduler:{KUBERNETES_VERSION}",),
        program=control_plane_programs() / "kube-scheduler",
        path="usr/local/bin/kube-scheduler",
    )


def shell_image() -> ProgramImage:
    """Return busybox, as the image of pods that tests create, and in place of `pause`.

    Raises BuildFailed if busybox is missing.
    """
    program = shutil.which("busybox")
    if program is None:
        raise BuildFailed("busybox is missing: `make e2e-setup` installs its package")
    tools = "sh sleep cat echo wget nslookup httpd timeout true false id".split()
    return ProgramImage(
        names=(SHELL_IMAGE, PAUSE_IMAGE, _BUSYBOX),
        program=Path(program),
        path="bin/busybox",
        links=tuple(f"bin/{tool}" for tool in tools),
        command=("/bin/sh", "-c", _UNTIL_ASKED),
    )


def scaphandre_image() -> ProgramImage:
    """Return real Scaphandre, started as in upstream's image; raises BuildFailed without cargo."""
    program = scaphandre_program()
    return ProgramImage(
        names=(SCAPHANDRE_IMAGE,),
        program=program,
        path="usr/local/bin/scaphandre",
        entrypoint=("/usr/local/bin/scaphandre",),
        libraries=libraries_of(program),
    )


def prometheus_image() -> ProgramImage:
    """Return real Prometheus, started as in upstream's image."""
    return ProgramImage(
        names=(PROMETHEUS_IMAGE,),
        program=prometheus_program(),
        path="bin/prometheus",
        entrypoint=("/bin/prometheus",),
    )


def identity(image: ProgramImage) -> str:
    """Return a hash of an image's names, configuration and files."""
    return _identity(image, _config(image, _layer(image)))


def archive(image: ProgramImage, folder: Path) -> Path:
    """Return the image's archive below `folder`, for `docker load` and containerd."""
    layer = _layer(image)
    config = _config(image, layer)
    path = folder / f"{Path(image.path).name}-{_identity(image, config)[:16]}.tar"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = [{"Config": name, "RepoTags": image.names, "Layers": ["layer.tar"]}]
    partial = path.with_suffix(".partial")
    with tarfile.open(partial, "w") as tar:
        _add(tar, name, config)
        _add(tar, "layer.tar", layer)
        _add(tar, "manifest.json", json.dumps(manifest).encode())
    return partial.rename(path)


def _identity(image: ProgramImage, config: bytes) -> str:
    """Return a hash of an image's names and configuration, which contains the layer's hash."""
    return hashlib.sha256("\n".join(image.names).encode() + b"\n" + config).hexdigest()


def _layer(image: ProgramImage) -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as tar:
        writable = tarfile.TarInfo("tmp")
        writable.type, writable.mode = tarfile.DIRTYPE, 0o1777
        tar.addfile(writable)
        _add(tar, image.path, image.program.read_bytes(), mode=0o755)
        for library in image.libraries:
            _add(tar, str(library).lstrip("/"), library.read_bytes(), mode=0o755)
        for link in image.links:
            entry = tarfile.TarInfo(link)
            entry.type, entry.linkname = tarfile.SYMTYPE, f"/{image.path}"
            tar.addfile(entry)
    return held.getvalue()


def _config(image: ProgramImage, layer: bytes) -> bytes:
    settings = {"Env": ["PATH=/usr/local/bin:/usr/bin:/bin"], "Cmd": list(image.command) or None}
    if image.entrypoint:
        settings["Entrypoint"] = list(image.entrypoint)
    machine = platform.machine()
    config = {
        "architecture": _ARCHITECTURES.get(machine, machine),
        "os": "linux",
        "config": settings,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
        "history": [],
    }
    return json.dumps(config, sort_keys=True).encode()


def _add(tar: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    tar.addfile(entry, io.BytesIO(content))
