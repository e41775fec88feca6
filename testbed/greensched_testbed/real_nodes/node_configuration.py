"""Writes the configuration of containerd, its pod network, kubelet and kube-proxy on a real node.

The paths are as on any node; they are in folders that only the node's mount namespace sees.
"""

import json
from pathlib import Path
from typing import Any

import yaml

from greensched_testbed.certificates import KeyPair
from greensched_testbed.real_nodes.lan import POD_CIDR

PAUSE_IMAGE = "registry.k8s.io/pause:3.10"
CLUSTER_DOMAIN = "cluster.local"
_SOCKET = "/run/containerd/containerd.sock"  # the only path that cAdvisor tries


def containerd_config(plugins: Path, network_folder: Path) -> str:
    """Return containerd's configuration."""
    return f"""\
version = 2
root = "/var/lib/containerd"
state = "/run/containerd"

[grpc]
  address = "{_SOCKET}"

[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/containerd/opt"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  # Lowering it needs a capability that root does not have everywhere.
  restrict_oom_score_adj = true

  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"

    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{network_folder}"
"""


def pod_network(pods: str) -> str:
    """Return the configuration of a network in which every pod has a link to its node.

    On a bridge without the kernel's br_netfilter, replies between pods of one node would bypass
    kube-proxy's address translation.
    """
    link = {
        "type": "ptp",
        "ipMasq": False,
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": pods}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    return json.dumps({"cniVersion": "1.0.0", "name": "pods", "plugins": [link]})


def kubelet_config(
    authority: Path, pair: KeyPair, cgroup_root: str, dns: str, resolv_conf: Path
) -> str:
    """Return a KubeletConfiguration that evicts no pods on a machine with other work."""
    nearly_full = {
        "memory.available": "50Mi",
        "nodefs.available": "1%",
        "nodefs.inodesFree": "1%",
        "imagefs.available": "1%",
    }
    config: dict[str, Any] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {"x509": {"clientCAFile": str(authority)}},
        "tlsCertFile": str(pair.certificate),
        "tlsPrivateKeyFile": str(pair.key),
        "containerRuntimeEndpoint": f"unix://{_SOCKET}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroup_root,
        "failCgroupV1": False,
        "failSwapOn": False,
        "clusterDomain": CLUSTER_DOMAIN,
        "clusterDNS": [dns],
        "resolvConf": str(resolv_conf),
        "volumePluginDir": "/var/lib/kubelet/volumeplugins",
        "evictionHard": nearly_full,
        "imageGCHighThresholdPercent": 100,
        "serializeImagePulls": False,
        "registryPullQPS": 0,
        "eventRecordQPS": 0,
        "shutdownGracePeriod": "0s",
    }
    return yaml.safe_dump(config)


def proxy_config(kubeconfig: Path, name: str) -> str:
    """Return a KubeProxyConfiguration that changes no sysctl of the machine."""
    config: dict[str, Any] = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "hostnameOverride": name,
        "mode": "nftables",
        "clusterCIDR": POD_CIDR,
        "conntrack": {"maxPerCore": 0, "min": 0},
    }
    return yaml.safe_dump(config)
