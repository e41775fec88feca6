"""Creates the network that joins the control plane, the nodes and this machine.

It is a bridge in its own namespace, in which the control plane also runs. This machine is another
host on it: its own network only gains one interface, which has the run's name.
"""

import json
from dataclasses import dataclass

from greensched_testbed.commands import run_command
from greensched_testbed.errors import CommandFailed, NotReady
from greensched_testbed.real_nodes.namespaces import Namespaces

POD_CIDR = "10.244.0.0/16"
_BRIDGE = "lan"
_NETWORKS = 256


@dataclass(frozen=True)
class Lan:
    """Addresses in 198.18.0.0/15, which is reserved for benchmarks and never routed."""

    namespaces: Namespaces
    number: int

    @property
    def gateway(self) -> str:
        """Return the address of the control plane and of the cluster's DNS."""
        return f"198.18.{self.number}.1"

    def address(self, node: int) -> str:
        """Return the address of a node; they count from 1."""
        return f"198.18.{self.number}.{10 + node}"

    def pods(self, node: int) -> str:
        """Return the network of a node's pods."""
        return f"10.244.{node}.0/24"

    def connect(self, node: int, name: str, namespaces: Namespaces) -> None:
        """Create a node's interface on the bridge, with its address."""
        ours, theirs = self.namespaces.holder.pid, namespaces.holder.pid
        run_command(
            *f"ip link add name eth0 netns {theirs} type veth".split(),
            *f"peer name {name} netns {ours}".split(),
        )
        self.namespaces.run(f"ip link set {name} master {_BRIDGE} up")
        namespaces.run(
            f"""
            ip link set lo up
            ip address add {self.address(node)}/24 dev eth0
            ip link set eth0 up
            ip route add default via {self.gateway}
            echo 1 > /proc/sys/net/ipv4/ip_forward
            """
        )

    def disconnect(self, name: str) -> None:
        """Delete a node's interface on the bridge, if it was not deleted with the node."""
        self.namespaces.run(f"ip link delete {name} 2>&1 || ! ip link show {name} 2>&1")

    def route_pods(self, count: int, machine: Namespaces, own: int = 0) -> None:
        """Add a machine's routes to the pods of `count` nodes, except for node `own`."""
        for node in range(1, count + 1):
            if node != own:
                machine.run(f"ip route add {self.pods(node)} via {self.address(node)}")


def lay_lan(namespaces: Namespaces, run: str) -> Lan:
    """Create the bridge and connect this machine, under the first free number."""
    lan = Lan(namespaces, _plug_in(namespaces.holder.pid, run))
    namespaces.run(
        f"""
        ip link set lo up
        ip link add {_BRIDGE} type bridge
        ip link set machine master {_BRIDGE} up
        ip address add {lan.gateway}/24 dev {_BRIDGE}
        ip link set {_BRIDGE} up
        """
    )
    run_command(*f"ip address add 198.18.{lan.number}.254/24 dev {_interface(lan.number)}".split())
    run_command(*f"ip link set {_interface(lan.number)} up".split())
    return lan


def plugged_in() -> dict[str, str]:
    """Return this machine's interfaces by run."""
    found = json.loads(run_command("ip", "-json", "link", "show", "type", "veth"))
    return {each["ifalias"]: each["ifname"] for each in found if each.get("ifalias")}


def unplug(run: str) -> None:
    """Delete this machine's interface, which lingering sockets would keep for minutes."""
    interface = plugged_in().get(run)
    if interface is not None:
        try:
            run_command("ip", "link", "delete", interface)
        except CommandFailed as fault:
            if "Cannot find device" not in fault.stderr:  # it was deleted with the run's namespace
                raise


def _plug_in(holder: int, run: str) -> int:
    """Create this machine's interface of the first unused network, and return its number."""
    for number in range(_NETWORKS):
        if run_command("ip", "route", "show", "exact", f"198.18.{number}.0/24"):
            continue
        try:
            name = _interface(number)
            run_command(
                *f"ip link add name {name} type veth peer name machine netns {holder}".split()
            )
            run_command("ip", "link", "set", name, "alias", run)
        except CommandFailed as fault:
            if "File exists" not in fault.stderr:
                raise
        else:
            return number
    raise NotReady(f"all {_NETWORKS} networks below 198.18.0.0/16 are in use on this machine")


def _interface(number: int) -> str:
    return f"greensched{number}"
