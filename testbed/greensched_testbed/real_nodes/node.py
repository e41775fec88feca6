"""Runs one real node: containerd, kubelet and kube-proxy in their own namespaces."""

import shutil
from pathlib import Path

from greensched_testbed.binaries import NODE_RECIPE, POD_NETWORK, built
from greensched_testbed.commands import run_command
from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.credentials import write_client_kubeconfig
from greensched_testbed.processes import Processes
from greensched_testbed.real_nodes.cgroups import RunCgroups
from greensched_testbed.real_nodes.lan import Lan
from greensched_testbed.real_nodes.namespaces import hold_namespaces
from greensched_testbed.real_nodes.node_configuration import (
    containerd_config,
    kubelet_config,
    pod_network,
    proxy_config,
)
from greensched_testbed.real_nodes.node_kinds import NodeKind
from greensched_testbed.real_nodes.sysctl_guard import guarding_script

_RUNTIME_TIMEOUT_S = 30.0
_SEARCH_PATH = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}


class RealNode:
    """A node with its own mounts, network, host name and cgroups.

    Its methods are called in the order below; its cluster tears it down.
    """

    def __init__(
        self,
        number: int,
        kind: NodeKind,
        folder: Path,
        processes: Processes,
        cgroups: RunCgroups,
        lan: Lan,
    ) -> None:
        self.number = number
        self.name = f"node-{number}"
        self.kind = kind
        self.folder = folder / self.name
        self.address = lan.address(number)
        self._processes = processes
        self._cgroups = cgroups
        self._lan = lan

    def boot(self, node_count: int) -> None:
        """Create namespaces, folders and network, and start containerd; raise if one fails."""
        self.folder.mkdir(exist_ok=True)
        self.namespaces = hold_namespaces(self._processes, self.name)
        self._cgroups.take(self.namespaces.holder.pid, self.name)
        self._lay_folders()
        self._lan.connect(self.number, self.name, self.namespaces)
        self._lan.route_pods(node_count, self.namespaces, own=self.number)
        self._start_containerd()

    def load_image(self, archive: Path) -> None:
        """Load an image archive of Docker or buildah; raise CommandFailed."""
        run_command(
            *self._cgroups.join(self.name),
            *self.namespaces.prefix(),
            *("ctr", "--namespace=k8s.io", "images", "import", str(archive)),
        )

    def join(self, plane: ControlPlane) -> None:
        """Start kubelet and kube-proxy, with certificates of the control plane's authority."""
        programs = built(NODE_RECIPE)
        self._start_kubelet(programs, plane)
        kubeconfig = self._kubeconfig(plane, "kube-proxy", "system:kube-proxy")
        config = self._write("kube-proxy.yaml", proxy_config(kubeconfig, self.name))
        self._start("kube-proxy", programs / "kube-proxy", f"--config={config}")

    def cut_power(self) -> None:
        """Kill all its processes; its disk's content stays for the next boot."""
        self._cgroups.clear(self.name)
        self.namespaces.close()
        self._lan.disconnect(self.name)

    def _lay_folders(self) -> None:
        """Set the node's host name, and mount its own /run, /var/lib and /var/log."""
        for name in ("lib", "log"):
            (self.folder / name).mkdir(exist_ok=True)
        self.namespaces.run(
            f"""
            echo {self.name} > /proc/sys/kernel/hostname
            mount -t tmpfs -o mode=755 run /run
            mkdir /run/lock
            mount --bind {self.folder / "lib"} /var/lib
            mount --bind {self.folder / "log"} /var/log
            {guarding_script(self.folder / "sysctls")}
            # Among its own containers only: the namespace shares nothing with this machine's.
            mount --make-rshared /
            """
        )

    def _start_containerd(self) -> None:
        network = self.folder / "cni"
        network.mkdir(exist_ok=True)
        (network / "10-pods.conflist").write_text(pod_network(self._lan.pods(self.number)))
        plugins = built(POD_NETWORK)
        config = self._write("containerd.toml", containerd_config(plugins, network))
        self._start("containerd", _found("containerd"), f"--config={config}")
        containerd = self._processes[f"{self.name}-containerd"]
        containerd.wait_until(self._runtime_answers, "its socket", _RUNTIME_TIMEOUT_S)

    def _runtime_answers(self) -> bool:
        # Read from its log, since the socket is in another namespace.
        socket = Path(f"/proc/{self.namespaces.holder.pid}/root/run/containerd/containerd.sock")
        return socket.exists()

    def _start_kubelet(self, programs: Path, plane: ControlPlane) -> None:
        serving = plane.authority.issue_server(f"{self.name}-serving", (self.name, self.address))
        resolv_conf = self._write("resolv.conf", f"nameserver {self._lan.gateway}\n")
        config = kubelet_config(
            plane.ca_file,
            serving,
            self._cgroups.node(self.name),
            self._lan.gateway,
            resolv_conf,
        )
        labels = ",".join(f"{key}={value}" for key, value in self.kind.labels.items())
        self._start(
            "kubelet",
            programs / "kubelet",
            f"--config={self._write('kubelet.yaml', config)}",
            f"--kubeconfig={self._kubeconfig(plane, 'kubelet', f'system:node:{self.name}')}",
            f"--hostname-override={self.name}",
            f"--node-ip={self.address}",
            f"--node-labels={labels}",
            f"--cert-dir={self.folder / 'certificates'}",
        )

    def _kubeconfig(self, plane: ControlPlane, program: str, user: str) -> Path:
        group = "system:nodes" if program == "kubelet" else ""
        pair = plane.authority.issue_client(f"{self.name}-{program}", user, group)
        path = self.folder / f"{program}.kubeconfig"
        return write_client_kubeconfig(path, plane.url, plane.ca_file, pair)

    def _start(self, program: str, path: Path, *arguments: str) -> None:
        self._processes.start(
            f"{self.name}-{program}",
            [*self._cgroups.join(self.name), *self.namespaces.prefix(), path, *arguments],
            _SEARCH_PATH,
        )

    def _write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        return path


def _found(program: str) -> Path:
    path = shutil.which(program)
    if path is None:
        raise FileNotFoundError(f"{program} is not installed")
    return Path(path)
