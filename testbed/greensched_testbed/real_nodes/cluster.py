"""Runs a control plane and real nodes on one machine, joined by a separate network."""

import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

import platformdirs
import psutil

from greensched_testbed.binaries import CONTROL_PLANE, DNS, NODE_RECIPE, POD_NETWORK, built
from greensched_testbed.components import API_SERVER, ControlPlaneOptions
from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.errors import CommandFailed, NotReady
from greensched_testbed.processes import Processes
from greensched_testbed.real_nodes.cgroups import (
    RunCgroups,
    all_runs,
    cgroups_of,
    is_abandoned,
    is_our_cgroup,
)
from greensched_testbed.real_nodes.dns import start_dns
from greensched_testbed.real_nodes.lan import Lan, lay_lan, plugged_in, unplug
from greensched_testbed.real_nodes.namespaces import Namespaces, hold_namespaces
from greensched_testbed.real_nodes.node import RealNode
from greensched_testbed.real_nodes.node_kinds import NodeKind
from greensched_testbed.real_nodes.program_images import archive, scheduler_image, shell_image
from greensched_testbed.requirements import require_nodes
from greensched_testbed.scratch import new_scratch_folder

_READY_TIMEOUT_S = 90.0
_API_SERVER_FLAGS = (
    "--endpoint-reconciler-type=lease",  # so that pods find it at 10.96.0.1
    "--kubelet-preferred-address-types=InternalIP",
    # It calls webhooks at their pods' addresses, since no kube-proxy runs beside it.
    "--enable-aggregator-routing=true",
)


def build_programs() -> None:
    """Build all that a control plane and real nodes run, on first use."""
    for recipe in (CONTROL_PLANE, NODE_RECIPE, POD_NETWORK, DNS):
        built(recipe)


class RealCluster:
    """Context manager: a control plane, DNS and nodes that run containers.

    On exit it removes all processes, mounts, namespaces, cgroups, interfaces and folders. After a
    SIGKILL of us, `sweep` or the next cluster's start removes what the kernel does not. Raises
    CannotRunNodes if the machine lacks a requirement.
    """

    def __init__(
        self,
        kinds: Sequence[NodeKind],
        *,
        folder: Path | None = None,
        outlives_us: bool = False,
    ) -> None:
        require_nodes()
        build_programs()
        self._owns_folder = folder is None
        self.folder = folder or new_scratch_folder()
        self.folder.mkdir(parents=True, exist_ok=True)
        self._kinds = tuple(kinds)
        self._outlives_us = outlives_us
        self.processes = Processes(self.folder / "logs", outlive_us=outlives_us)
        self.nodes: tuple[RealNode, ...] = ()
        self.run = ""  # the run's name, once it has cgroups
        self.ready_s = 0.0  # seconds from start to all nodes Ready
        self.plane: ControlPlane
        self.namespaces: Namespaces  # of the network and the control plane

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Start everything, and wait until all nodes are Ready; remove everything on failure."""
        began = time.monotonic()
        try:
            sweep()
            lan = self._lay_network()
            with ThreadPoolExecutor(1) as executor:
                loaded = executor.submit(self._boot_nodes)
                self.plane = self._start_plane(lan)
                loaded.result()
            start_dns(self.plane, self.processes, self._beside_plane(), lan.gateway)
            for node in self.nodes:
                node.join(self.plane)
            self._wait_until_ready()
        except BaseException:
            self.close()
            raise
        self.ready_s = time.monotonic() - began

    def load_images(self, archives: Iterable[Path]) -> None:
        """Load image archives of Docker or buildah on every node; raise CommandFailed."""
        archives = tuple(archives)

        def load(node: RealNode) -> None:
            for each in archives:
                node.load_image(each)

        with ThreadPoolExecutor(len(self.nodes)) as at_once:
            list(at_once.map(load, self.nodes))

    def restart_node(self, name: str) -> None:
        """Kill a node's processes, boot it, and wait until it is Ready again."""
        (node,) = (each for each in self.nodes if each.name == name)
        before = self._last_heartbeat(name)
        node.cut_power()
        node.boot(len(self.nodes))
        node.join(self.plane)
        kubelet = self.processes[f"{name}-kubelet"]
        alive = "its heartbeat"
        kubelet.wait_until(lambda: self._last_heartbeat(name) != before, alive, _READY_TIMEOUT_S)
        self._wait_until_ready()

    def close(self) -> None:
        """Kill all its processes and remove all traces; safe to repeat."""
        try:
            if self.run:
                remove_run(self.run)
        finally:
            self.processes.stop_all()
            for each in self._namespaces():
                each.close()
            if hasattr(self, "plane"):
                self.plane.close()
            if self._owns_folder:
                shutil.rmtree(self.folder, ignore_errors=True)

    def let_go(self) -> None:
        """Leave everything running and stop managing it; needs `outlives_us`."""
        for each in self._namespaces():
            each.let_go()
        self.plane.let_go()
        self.processes.let_go()

    def _namespaces(self) -> Iterator[Namespaces]:
        """Yield the namespaces that exist."""
        for each in (self, *self.nodes):
            if hasattr(each, "namespaces"):
                yield each.namespaces

    def _lay_network(self) -> Lan:
        self.namespaces = hold_namespaces(self.processes, "network")
        self._cgroups = cgroups_of(psutil.Process(self.namespaces.holder.pid))
        self.run = self._cgroups.name
        names = tuple(f"node-{number}" for number, _ in enumerate(self._kinds, start=1))
        self._cgroups.make(names)
        self._cgroups.take(self.namespaces.holder.pid)
        lan = lay_lan(self.namespaces, self.run)
        self.nodes = tuple(
            RealNode(number, kind, self.folder, self.processes, self._cgroups, lan)
            for number, kind in enumerate(self._kinds, start=1)
        )
        lan.route_pods(len(self.nodes), self.namespaces)
        return lan

    def _boot_nodes(self) -> None:
        for node in self.nodes:
            node.boot(len(self.nodes))
        folder = image_folder()
        self.load_images(archive(each, folder) for each in (shell_image(), scheduler_image()))

    def _start_plane(self, lan: Lan) -> ControlPlane:
        options = ControlPlaneOptions(
            kwok=False,
            address=lan.gateway,
            prefix=self._beside_plane(),
            extra_flags={API_SERVER: _API_SERVER_FLAGS},
        )
        folder = self.folder / "control-plane"
        plane = ControlPlane(options, folder=folder, outlives_us=self._outlives_us)
        plane.start_all()
        return plane

    def _beside_plane(self) -> tuple[str, ...]:
        return (*self._cgroups.join(), *self.namespaces.prefix())

    def _last_heartbeat(self, node: str) -> str:
        options = ("--namespace=kube-node-lease", "--output=jsonpath={.spec.renewTime}")
        return self.plane.kubectl("get", "lease", node, *options)

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + _READY_TIMEOUT_S
        for node in self.nodes:
            while not self._is_ready(node):
                for process in self.processes.all():
                    process.check()
                if time.monotonic() > deadline:
                    raise NotReady(f"{node.name} is not Ready after {_READY_TIMEOUT_S:.0f} s")
                time.sleep(0.1)

    def _is_ready(self, node: RealNode) -> bool:
        path = "jsonpath={.status.conditions[?(@.type=='Ready')].status}"
        try:
            return self.plane.kubectl("get", "node", node.name, "--output", path) == "True"
        except CommandFailed as fault:
            if "NotFound" not in fault.stderr:
                raise
            return False


def sweep() -> tuple[str, ...]:
    """Remove what clusters left whose parents were killed, and return the clusters' names."""
    runs = {run.name for run in all_runs()} | {name for name in plugged_in() if is_our_cgroup(name)}
    abandoned = tuple(name for name in sorted(runs) if is_abandoned(name))
    for name in abandoned:
        remove_run(name)
    return abandoned


def remove_run(name: str) -> None:
    """Kill a run's processes, and remove what it has outside its folder; safe to repeat."""
    RunCgroups(name).remove()
    unplug(name)


def image_folder() -> Path:
    """Return the folder of image archives, which is kept between runs."""
    return platformdirs.user_cache_path("greensched", appauthor=False) / "image-archives"
