"""The command lines of the control plane's programs.

They have only the flags found necessary. Everything listens on 127.0.0.1, except an API server with
another address.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from greensched_testbed.certificates import Authority, KeyPair, write_token_keys
from greensched_testbed.credentials import write_client_kubeconfig
from greensched_testbed.ports import free_ports

ETCD = "etcd"
API_SERVER = "kube-apiserver"
CONTROLLER_MANAGER = "kube-controller-manager"
SCHEDULER = "kube-scheduler"
KWOK = "kwok"

STAGES = Path(__file__).parent / "stages"
_SERVER_HOSTS = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "127.0.0.1",
    "10.96.0.1",
)
_ISSUER = "https://kubernetes.default.svc.cluster.local"


@dataclass(frozen=True)
class ControlPlaneOptions:
    """What to run and how; the defaults suit tests and the demo.

    kwok: simulate nodes and pods; without it nodes send no heartbeats and bound pods stay Pending.
    scheduler: run the default kube-scheduler.
    controllers: value of kube-controller-manager's --controllers; benchmarks with plain Node
        objects use `*,-node-lifecycle-controller`.
    client_qps, client_burst: of scheduler and controller-manager; Kubernetes' defaults, 50 and 100,
        limit binding to 55 pods/s.
    extra_flags: additional flags by program name.
    address: on which the API server listens, and for which its certificate is valid.
    prefix: command that starts each program, such as nsenter with its arguments.
    """

    kwok: bool = True
    scheduler: bool = True
    controllers: str = "*"
    client_qps: int = 5_000
    client_burst: int = 5_000
    max_requests_inflight: int = 3_000
    max_mutating_requests_inflight: int = 1_500
    extra_flags: dict[str, tuple[str, ...]] = field(default_factory=dict)
    address: str = "127.0.0.1"
    prefix: tuple[str, ...] = ()


@dataclass(frozen=True)
class Blueprint:
    """The plan of one control plane: its folder, ports, keys and command lines."""

    programs: Path
    folder: Path
    options: ControlPlaneOptions
    api_port: int
    etcd_ports: tuple[int, int]  # client, peer
    manager_port: int
    scheduler_port: int
    kubelet_port: int  # kwok serves every node's kubelet API there
    authority: Authority
    server: KeyPair
    token_keys: KeyPair
    admin: KeyPair
    admin_kubeconfig: Path
    manager_kubeconfig: Path
    scheduler_kubeconfig: Path

    @property
    def url(self) -> str:
        """Return the API server's address."""
        return f"https://{self.options.address}:{self.api_port}"

    @property
    def kwok_folder(self) -> Path:
        """Return the folder of additional kwok configuration, which kwok reads at its start."""
        return self.folder / "kwok"

    def command(self, component: str) -> list[str | Path]:
        """Return the command line of a component; raise KeyError if its name is unknown."""
        arguments = {
            ETCD: self._etcd,
            API_SERVER: self._api_server,
            CONTROLLER_MANAGER: self._controller_manager,
            SCHEDULER: self._scheduler,
            KWOK: self._kwok,
        }[component]()
        return [
            *self.options.prefix,
            self.programs / component,
            *arguments,
            *self.options.extra_flags.get(component, ()),
        ]

    def _etcd(self) -> list[str]:
        client, peer = (f"http://127.0.0.1:{port}" for port in self.etcd_ports)
        return [
            "--name=testbed",
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=testbed={peer}",
            "--log-level=warn",
            "--unsafe-no-fsync",  # the data need not survive a crash
            "--quota-backend-bytes=8589934592",
        ]

    def _api_server(self) -> list[str]:
        return [
            f"--etcd-servers=http://127.0.0.1:{self.etcd_ports[0]}",
            f"--bind-address={self.options.address}",
            f"--advertise-address={self.options.address}",
            f"--secure-port={self.api_port}",
            f"--tls-cert-file={self.server.certificate}",
            f"--tls-private-key-file={self.server.key}",
            f"--client-ca-file={self.authority.certificate_file}",
            f"--cert-dir={self.folder / 'apiserver'}",
            # Its identity towards kubelets, for logs, exec and port-forward.
            f"--kubelet-client-certificate={self.admin.certificate}",
            f"--kubelet-client-key={self.admin.key}",
            "--endpoint-reconciler-type=none",
            f"--service-account-issuer={_ISSUER}",
            f"--service-account-key-file={self.token_keys.certificate}",
            f"--service-account-signing-key-file={self.token_keys.key}",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--authorization-mode=Node,RBAC",
            "--allow-privileged=true",
            "--profiling=false",
            f"--max-requests-inflight={self.options.max_requests_inflight}",
            f"--max-mutating-requests-inflight={self.options.max_mutating_requests_inflight}",
            *_admission(self.options),
        ]

    def _controller_manager(self) -> list[str]:
        return [
            *_delegating(self.manager_kubeconfig, self.manager_port),
            f"--kubeconfig={self.manager_kubeconfig}",
            f"--service-account-private-key-file={self.token_keys.key}",
            f"--root-ca-file={self.authority.certificate_file}",
            "--use-service-account-credentials=true",
            "--leader-elect=false",
            f"--controllers={self.options.controllers}",
            f"--kube-api-qps={self.options.client_qps}",
            f"--kube-api-burst={self.options.client_burst}",
            # It creates this folder at its start; the default is in /usr/libexec/kubernetes.
            f"--flex-volume-plugin-dir={self.folder / 'volume-plugins'}",
        ]

    def _scheduler(self) -> list[str]:
        return scheduler_arguments(
            self.folder / "kube-scheduler.yaml",
            default_scheduler_config(self.options),
            self.scheduler_kubeconfig,
            self.scheduler_port,
        )

    def _kwok(self) -> list[str]:
        return [
            f"--kubeconfig={self.admin_kubeconfig}",
            "--manage-all-nodes=true",
            *(f"--config={path}" for path in sorted(STAGES.glob("*.yaml"))),
            *(f"--config={path}" for path in sorted(self.kwok_folder.glob("*.yaml"))),
            f"--server-address=127.0.0.1:{self.kubelet_port}",
            f"--node-port={self.kubelet_port}",
            f"--tls-cert-file={self.server.certificate}",
            f"--tls-private-key-file={self.server.key}",
            "--node-lease-duration-seconds=40",
            "--node-ip=127.0.0.1",
            "-v=WARN",
        ]


def draw(programs: Path, folder: Path, options: ControlPlaneOptions) -> Blueprint:
    """Return a blueprint with free ports; write its keys and kubeconfigs below `folder`."""
    api, etcd, peer, manager, scheduler, kubelet = free_ports(6)
    authority = Authority(folder / "keys")
    url = f"https://{options.address}:{api}"

    def kubeconfig(name: str, client: KeyPair) -> Path:
        path = folder / f"{name}.kubeconfig"
        return write_client_kubeconfig(path, url, authority.certificate_file, client)

    admin = authority.issue_client("admin", "admin", "system:masters")
    return Blueprint(
        programs=programs,
        folder=folder,
        options=options,
        api_port=api,
        etcd_ports=(etcd, peer),
        manager_port=manager,
        scheduler_port=scheduler,
        kubelet_port=kubelet,
        authority=authority,
        server=authority.issue_server(
            "apiserver", tuple(dict.fromkeys((*_SERVER_HOSTS, options.address)))
        ),
        token_keys=write_token_keys(folder / "keys"),
        admin=admin,
        admin_kubeconfig=kubeconfig("admin", admin),
        manager_kubeconfig=kubeconfig(
            "controller-manager",
            authority.issue_client("controller-manager", "system:kube-controller-manager"),
        ),
        scheduler_kubeconfig=kubeconfig(
            "scheduler", authority.issue_client("scheduler", "system:kube-scheduler")
        ),
    )


def default_scheduler_config(options: ControlPlaneOptions) -> str:
    """Return the configuration of a default kube-scheduler with our client limits."""
    return yaml.safe_dump(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"qps": options.client_qps, "burst": options.client_burst},
        }
    )


def scheduler_arguments(
    config_file: Path, config_text: str, kubeconfig: Path, port: int
) -> list[str]:
    """Write a scheduler's configuration and return the arguments that run it outside a cluster.

    This sets only clientConnection.kubeconfig, which a pod would not need.
    """
    config: dict[str, Any] = yaml.safe_load(config_text)
    config.setdefault("clientConnection", {})["kubeconfig"] = str(kubeconfig)
    config_file.write_text(yaml.safe_dump(config, sort_keys=False))
    return [
        f"--config={config_file}",
        *_delegating(kubeconfig, port),
        "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics",
    ]


def _admission(options: ControlPlaneOptions) -> list[str]:
    """Return flags that stop tainting new nodes not-ready if no controller removes the taint."""
    if "-node-lifecycle-controller" not in options.controllers.split(","):
        return []
    return ["--disable-admission-plugins=TaintNodesByCondition"]


def _delegating(kubeconfig: Path, port: int) -> list[str]:
    return [
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
    ]
