"""Runs the cluster's DNS: CoreDNS as a process beside the control plane."""

import json
from pathlib import Path
from typing import Any

from greensched_testbed.binaries import DNS, built
from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.credentials import write_client_kubeconfig
from greensched_testbed.processes import Processes
from greensched_testbed.real_nodes.node_configuration import CLUSTER_DOMAIN

NAME = "coredns"
_USER = "system:coredns"


def start_dns(
    plane: ControlPlane, processes: Processes, prefix: tuple[str, ...], address: str
) -> None:
    """Start CoreDNS on `address`, through `prefix`, with the right to read what it serves."""
    pair = plane.authority.issue_client(NAME, _USER)
    kubeconfig = write_client_kubeconfig(
        plane.folder / f"{NAME}.kubeconfig", plane.url, plane.ca_file, pair
    )
    plane.kubectl("apply", "--filename=-", stdin=json.dumps(_rights()))
    corefile = plane.folder / "Corefile"
    corefile.write_text(_corefile(address, kubeconfig))
    processes.start(NAME, [*prefix, built(DNS) / "coredns", "-conf", corefile])


def _corefile(address: str, kubeconfig: Path) -> str:
    """Return the usual configuration without forwarding: there is nothing outside the cluster."""
    return f"""\
.:53 {{
    bind {address}
    errors
    kubernetes {CLUSTER_DOMAIN} in-addr.arpa {{
        kubeconfig {kubeconfig}
        ttl 5
    }}
    cache 5
}}
"""


def _rights() -> dict[str, Any]:
    group = {"apiGroup": "rbac.authorization.k8s.io"}
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": _USER},
        "rules": [
            {
                "apiGroups": ["", "discovery.k8s.io"],
                "resources": ["services", "pods", "namespaces", "endpointslices"],
                "verbs": ["list", "watch"],
            }
        ],
    }
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": _USER},
        "roleRef": {**group, "kind": "ClusterRole", "name": _USER},
        "subjects": [{**group, "kind": "User", "name": _USER}],
    }
    return {"apiVersion": "v1", "kind": "List", "items": [role, binding]}
