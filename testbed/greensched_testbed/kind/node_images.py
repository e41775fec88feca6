"""Builds the images that kubeadm runs on a node, each with one program of ours."""

import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from greensched_testbed.binaries import (
    DNS,
    KUBERNETES_VERSION,
    NODE_RECIPE,
    built,
    control_plane_programs,
)
from greensched_testbed.kind.layers import (
    Layer,
    LayerEntry,
    compressed_layer,
    layer_at,
    write_image,
    write_layer,
)
from greensched_testbed.real_nodes.program_images import archive, shell_image

_REGISTRY = "registry.k8s.io"
_SEARCH_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Named as in `kubeadm config images list`, but with the programs of our own modules.
_ETCD, _COREDNS = "etcd:3.6.8-0", "coredns/coredns:v1.14.2"
# kube-proxy changes the node's iptables by these programs and their libraries.
_OF_IPTABLES = ("bin", "sbin", "lib", "lib64", "usr/sbin/", "usr/lib/", "usr/lib64/")
_NOT_OF_IPTABLES = ("usr/lib/systemd/", "usr/lib/apt/", "usr/lib/udev/", "usr/lib/git-core/")


@dataclass(frozen=True)
class _Program:
    """A program that kubeadm runs, its image, and the image's command where kubeadm sets none."""

    image: str
    path: Path
    settings: Mapping[str, object] = field(default_factory=dict)
    needs_iptables: bool = False


def write_node_images(base: Path, folder: Path) -> tuple[Path, ...]:
    """Write the images' archives into a folder, and return their paths; `base` has iptables."""
    written = [archive(shell_image(), folder)]
    for program in _programs():
        path = folder / f"{program.path.name}.tar"
        layers = [_layer_of_iptables(base, folder)] if program.needs_iptables else []
        entry = LayerEntry(f"usr/local/bin/{program.path.name}", program.path, 0o755)
        plain = write_layer((entry,), folder / f"{program.path.name}.layer.tar")
        layers.append(compressed_layer(plain))
        settings = {"Env": [_SEARCH_PATH], **program.settings}
        write_image(path, [f"{_REGISTRY}/{program.image}"], settings, layers)
        for layer in (plain, *layers):
            layer.path.unlink()
        written.append(path)
    return tuple(written)


def _programs() -> Iterator[_Program]:
    plane = control_plane_programs()
    for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        yield _Program(f"{name}:{KUBERNETES_VERSION}", plane / name)
    yield _Program(_ETCD, plane / "etcd")
    proxy = built(NODE_RECIPE) / "kube-proxy"
    yield _Program(f"kube-proxy:{KUBERNETES_VERSION}", proxy, needs_iptables=True)
    entrypoint = {"Entrypoint": ["/usr/local/bin/coredns"]}
    yield _Program(_COREDNS, built(DNS) / "coredns", entrypoint)


def _layer_of_iptables(base: Path, folder: Path) -> Layer:
    """Return a layer with the files that iptables needs from a Debian system."""
    path = folder / "iptables.layer.tar"
    with tarfile.open(base) as source, tarfile.open(path, "w") as target:
        for member in source:
            name = member.name.removeprefix("./")
            if _is_of_iptables(name) and not name.startswith(_NOT_OF_IPTABLES):
                content = source.extractfile(member) if member.isfile() else None
                target.addfile(member, content)
    plain = layer_at(path)
    packed = compressed_layer(plain)
    path.unlink()
    return packed


def _is_of_iptables(name: str) -> bool:
    is_link = name in _OF_IPTABLES or name.startswith("etc/alternatives/ip")
    return is_link or name.startswith(tuple(each for each in _OF_IPTABLES if each.endswith("/")))
