"""Builds kind's node image from Debian's packages, Go modules and kind's own files.

`kind build node-image` does the same in an engine, with images from registries.
"""

import hashlib
import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import platformdirs

from greensched_testbed.binaries import (
    CONTAINERD,
    CONTROL_PLANE,
    CRI_TOOLS,
    DNS,
    KIND,
    KUBEADM,
    KUBERNETES_VERSION,
    NODE_RECIPE,
    POD_NETWORK,
    built,
    control_plane_programs,
    kind_sources,
)
from greensched_testbed.kind.debian_base import base_key, base_tar
from greensched_testbed.kind.layers import LayerEntry, layer_at, write_image, write_layer
from greensched_testbed.kind.node_images import write_node_images
from greensched_testbed.progress import LiveLine
from greensched_testbed.real_nodes.program_images import SHELL_IMAGE, identity, shell_image
from greensched_testbed.real_nodes.sysctl_guard import KERNEL_SETTINGS

_HERE = Path(__file__).parent
_MADE_BY = (
    *("layers.py", "node_image.py", "node_images.py", "pod-network.yaml", "storage.yaml"),
    "../real_nodes/sysctl_guard.py",
)
_RECIPES = (CONTROL_PLANE, NODE_RECIPE, POD_NETWORK, DNS, CONTAINERD, CRI_TOOLS, KUBEADM, KIND)
_SETTINGS = {
    "Env": [
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "container=docker",  # tells systemd that it runs in a container
    ],
    "Entrypoint": ["/usr/local/bin/entrypoint", "/sbin/init"],
    "StopSignal": "SIGRTMIN+3",
}
_UNITS = "etc/systemd/system"
# No process of a node, such as systemd or kubelet, may change a sysctl of the machine. Network
# sysctls are namespaced, the others are shared.
_GUARD = """
log_info 'guarding the settings of this machine'
mkdir -p /kind/proc-sys-net
mount --make-private /proc # else the last unmounting takes both mounts
mount --bind /proc/sys/net /kind/proc-sys-net
mount --bind /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys
mount --bind /kind/proc-sys-net /proc/sys/net
umount /kind/proc-sys-net
for file in /kind/sysctls/*; do
  name=${file##*/}
  mount --bind "$file" "/proc/sys/${name//.//}"
done
"""
_LAST_STEP = "log_info 'starting init'"
_IMPORT = "ctr --namespace=k8s.io images import --all-platforms --no-unpack --digests"
_WITH_IMAGES = f"""\
[Service]
ExecStartPost=/bin/sh -euc 'for file in /kind/images/*.tar; do /usr/local/bin/{_IMPORT} \
--label=io.cri-containerd.pinned=pinned $file; done'
TimeoutStartSec=300
"""
_AFTER_IMAGES = "[Unit]\nAfter=containerd.service\nRequires=containerd.service\n"


def node_image_folder() -> Path:
    """Return the folder of the image and its inputs."""
    return platformdirs.user_cache_path("greensched", appauthor=False) / "kind"


def node_image_name() -> str:
    """Return the image's name, whose tag is the hash of its inputs.

    Raises BuildFailed without busybox, which is in its pods' image.
    """
    digest = hashlib.sha256(base_key().encode())
    digest.update(identity(shell_image()).encode())
    for recipe in _RECIPES:
        digest.update(recipe.key().encode())
    for name in _MADE_BY:
        digest.update((_HERE / name).read_bytes())
    return f"localhost/greensched-kind-node:{KUBERNETES_VERSION}-{digest.hexdigest()[:10]}"


def node_image(folder: Path | None = None) -> Path:
    """Return the image's archive for `docker load`; build it on first use. Raises BuildFailed."""
    folder = folder or node_image_folder()
    path = folder / f"node-{node_image_name().rpartition('-')[2]}.tar"
    if path.exists():
        return path
    for recipe in _RECIPES:
        built(recipe)
    base = base_tar(folder)
    LiveLine().say("kind's node image: building it, about half a minute")
    with tempfile.TemporaryDirectory(dir=folder) as name:
        parts = Path(name)
        archives = write_node_images(base, parts)
        added = write_layer(_added(archives), parts / "added.tar")
        partial = parts / "node.tar"
        write_image(partial, [node_image_name()], _SETTINGS, [layer_at(base), added])
        for older in folder.glob("node-*.tar"):
            older.unlink()
        return partial.rename(path)


def _added(archives: tuple[Path, ...]) -> Iterator[LayerEntry]:
    yield from _files_of_kind(kind_sources() / "images/base/files")
    yield from _programs()
    yield from _services()
    yield LayerEntry("kind/version", KUBERNETES_VERSION.encode())
    for each in archives:
        yield LayerEntry(f"kind/images/{each.name}", each)
    network = (_HERE / "pod-network.yaml").read_text().replace("${IMAGE}", SHELL_IMAGE)
    yield LayerEntry("kind/manifests/default-cni.yaml", network.encode())
    yield LayerEntry("kind/manifests/default-storage.yaml", (_HERE / "storage.yaml").read_bytes())
    for setting, value in KERNEL_SETTINGS.items():
        yield LayerEntry(f"kind/sysctls/{setting.replace('/', '.')}", f"{value}\n".encode())


def _files_of_kind(files: Path) -> Iterator[LayerEntry]:
    changed = {
        "usr/local/bin/entrypoint": (_LAST_STEP, f"{_GUARD}\n{_LAST_STEP}"),
        # Lowering it needs a capability that root does not have everywhere.
        "etc/containerd/config.toml": (
            "restrict_oom_score_adj = false",
            "restrict_oom_score_adj = true",
        ),
        # Let it continue on a machine with cgroups of version 1.
        "etc/default/kubelet": ("KUBELET_EXTRA_ARGS=", "KUBELET_EXTRA_ARGS=--fail-cgroupv1=false "),
    }
    for path in sorted(each for each in files.rglob("*") if each.is_file()):
        name = str(path.relative_to(files))
        content = path.read_text()
        old, new = changed.pop(name, ("", ""))
        if old not in content:
            raise ValueError(f"kind's {name} no longer contains {old!r}")
        program = "/bin/" in name
        text = content.replace(old, new) if old else content
        yield LayerEntry(name, text.encode(), 0o755 if program else 0o644)
    if changed:
        raise ValueError(f"kind no longer has {', '.join(changed)}")


def _programs() -> Iterator[LayerEntry]:
    places = {
        "usr/bin/kubeadm": built(KUBEADM),
        "usr/bin/kubelet": built(NODE_RECIPE),
        "usr/bin/kubectl": control_plane_programs(),
        "usr/local/bin/crictl": built(CRI_TOOLS),
        **{f"usr/local/bin/{name}": built(CONTAINERD) for name in CONTAINERD.programs},
        **{f"opt/cni/bin/{name}": built(POD_NETWORK) for name in POD_NETWORK.programs},
    }
    for place, folder in places.items():
        yield LayerEntry(place, folder / Path(place).name, 0o755)


def _services() -> Iterator[LayerEntry]:
    for name in ("kubelet", "containerd", "undo-mount-hacks"):
        link = f"{_UNITS}/multi-user.target.wants/{name}.service"
        yield LayerEntry(link, target=f"/{_UNITS}/{name}.service")
    yield LayerEntry(f"{_UNITS}/systemd-binfmt.service", target="/dev/null")
    yield LayerEntry(f"{_UNITS}/containerd.service.d/10-images.conf", _WITH_IMAGES.encode())
    yield LayerEntry(f"{_UNITS}/kubelet.service.d/12-images.conf", _AFTER_IMAGES.encode())
    yield LayerEntry("etc/systemd/journald.conf.d/kind.conf", b"[Journal]\nReadKMsg=no\n")
    yield LayerEntry("etc/containerd/cri-base.json", json.dumps(_container_defaults()).encode())
    yield LayerEntry("etc/kubernetes/manifests")


def _container_defaults() -> dict[str, object]:
    """Return containerd's base specification of containers, as in kind's Dockerfile."""
    ctr = built(CONTAINERD) / "ctr"
    text = subprocess.run([ctr, "oci", "spec"], capture_output=True, text=True, check=True).stdout
    spec: dict[str, dict[str, object]] = json.loads(text)
    spec["process"].pop("rlimits", None)
    spec["hooks"] = {"createContainer": [{"path": "/kind/bin/mount-product-files.sh"}]}
    return {**spec}
