"""The cluster of the extender's benchmarks: a real control plane with plain nodes."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import msgspec
import yaml

from benchmarks.command_line import ROOT
from greensched_core import labels
from greensched_core.kubernetes_api import ApiClient
from greensched_testbed.components import ControlPlaneOptions
from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.nodes import EqualNodes
from greensched_testbed.ports import free_port, free_ports
from greensched_testbed.processes import start_process

CHART = ROOT / "deploy/helm/greensched"
NAMESPACE = "bench"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
GIB = 2.0**30
NODE_ZONES = ("DE", "FR", "PL", "NO")
_MODELS = ("epyc-9654-1s", "epyc-7763-1s", "xeon-8480-2s", "xeon-8380-2s")
_AT_ONCE = 32
_STARTUP_TIMEOUT_S = 120.0


def options() -> ControlPlaneOptions:
    """Return a control plane without kwok, default scheduler and node lifecycle."""
    return ControlPlaneOptions(
        kwok=False,
        scheduler=False,
        # All other controllers would take CPU from the measurement.
        controllers="serviceaccount-token-controller,serviceaccount-controller,"
        "root-ca-certificate-publisher-controller,namespace-controller",
    )


def groups(first: int, last: int) -> list[EqualNodes]:
    """Return nodes `first` to `last`, spread over four zones and four hardware models."""
    per = (last - first) // 16
    return [
        EqualNodes(
            count=per,
            name_prefix=f"n{first}-{zone.lower()}-{number}",
            cpu_cores=64,
            memory_bytes=256 * GIB,
            grid_zone=zone,
            power_model=model,
        )
        for zone in NODE_ZONES
        for number, model in enumerate(_MODELS)
    ]


def pod(
    name: str, *, scheduler: str, node: str = "", filler_bytes: int = 0, cpu: str = "100m"
) -> bytes:
    """Return a pod that requests `cpu` and 128Mi, as pods of the no-op benchmark do."""
    annotations = {labels.RUNTIME: "1h"}
    if filler_bytes:
        annotations["bench.greensched.io/filler"] = "x" * filler_bytes
    return msgspec.json.encode(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": {"app": "bench"}, "annotations": annotations},
            "spec": {
                "schedulerName": scheduler,
                **({"nodeName": node} if node else {}),
                "terminationGracePeriodSeconds": 0,
                "containers": [
                    {
                        "name": "c",
                        "image": "busybox:1.37",
                        "resources": {"requests": {"cpu": cpu, "memory": "128Mi"}},
                    }
                ],
            },
        }
    )


async def at_once(calls: Sequence[Callable[[], Awaitable[bytes]]]) -> None:
    """Await all calls, 32 at a time."""
    queue = iter(calls)

    async def work() -> None:
        for call in queue:
            await call()

    async with asyncio.TaskGroup() as tasks:
        for _ in range(_AT_ONCE):
            tasks.create_task(work())


async def delete_pods(client: ApiClient) -> None:
    """Delete all pods of the benchmark and wait until they are gone."""
    await client.delete(PODS, {"gracePeriodSeconds": 0})
    while True:
        async for page in client.pages(PODS, limit=1):
            if not page.items:
                return
            break
        await asyncio.sleep(0.2)


def chart_objects(plane: ControlPlane, extender_url: str) -> list[dict[str, Any]]:
    """Return the chart's objects with defaults and this extender's address, without hooks."""
    text = plane.helm(
        "template", "greensched", str(CHART), "--namespace", "greensched", "--no-hooks",
        "--set", f"scheduler.extenderUrl={extender_url}",
    )  # fmt: skip
    return [document for document in yaml.safe_load_all(text) if document]


def install_accounts(plane: ControlPlane) -> None:
    """Create only the chart's CRDs, service accounts and roles."""
    kinds = {"CustomResourceDefinition", "ServiceAccount", "ClusterRole", "ClusterRoleBinding",
             "Role", "RoleBinding"}  # fmt: skip
    plane.create_namespace("greensched")
    plane.create_namespace(NAMESPACE)
    chosen = [each for each in chart_objects(plane, "http://127.0.0.1:1") if each["kind"] in kinds]
    plane.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(chosen))


@dataclass(frozen=True)
class Profile:
    """How a turn's scheduler differs from the chart's."""

    percentage: int = 0  # percentageOfNodesToScore; 0 lets kube-scheduler choose
    weight: int | None = None  # of the extender; None: the chart's
    upstream_scores: bool = False  # also enable the score plugins that the chart turns off


def scheduler_config(plane: ControlPlane, extender_url: str | None, differs: Profile) -> str:
    """Return the chart's KubeSchedulerConfiguration with the changes of `differs`.

    Without an `extender_url` it has no extender.
    """
    (config_map,) = (
        each
        for each in chart_objects(plane, extender_url or "http://127.0.0.1:1")
        if each["kind"] == "ConfigMap" and each["metadata"]["name"] == "greensched-scheduler"
    )
    config = yaml.safe_load(config_map["data"]["config.yaml"])
    if extender_url is None:
        config.pop("extenders")
    elif differs.weight is not None:
        config["extenders"][0]["weight"] = differs.weight
    if differs.upstream_scores:
        config["profiles"][0]["plugins"]["score"].pop("disabled")
    config["percentageOfNodesToScore"] = differs.percentage
    config["leaderElection"] = {"leaderElect": False}  # so that a turn starts at once
    return yaml.safe_dump(config)


@dataclass(frozen=True)
class Running:
    """A running extender process."""

    url: str
    port: int
    pid: int
    ready_s: float  # from start to /readyz


OURS = ("-m", "greensched_extender")
FLOOR = (str(ROOT / "benchmarks/floor_extender.py"),)


@contextmanager
def our_extender(plane: ControlPlane, program: Sequence[str] = OURS) -> Iterator[Running]:
    """Run our extender as the chart does: with its service account and the shipped model."""
    account = plane.service_account_dir("greensched", "greensched-extender")
    with extender_process(account, plane.in_cluster_environment(), program) as running:
        yield running


@contextmanager
def extender_process(
    account: Path, environment: Mapping[str, str], program: Sequence[str] = OURS
) -> Iterator[Running]:
    """Run our extender with a service account's folder and the variables of a cluster."""
    port, explain_port = free_ports(2)
    whole = {
        **environment,
        "PATH": str(Path(sys.executable).parent),
        "GREENSCHED_EXTENDER_LISTEN_HOST": "127.0.0.1",
        "GREENSCHED_EXTENDER_LISTEN_PORT": str(port),
        "GREENSCHED_EXTENDER_EXPLAIN_PORT": str(explain_port),
        "GREENSCHED_EXTENDER_SERVICEACCOUNT_DIR": str(account),
    }
    argv = [sys.executable, *program]
    with _serving(account / "extender.log", argv, port, whole) as running:
        yield running


@contextmanager
def noop_extender(plane: ControlPlane) -> Iterator[Running]:
    """Run the do-nothing extender."""
    port = free_port()
    argv = [sys.executable, str(ROOT / "benchmarks/noop_extender.py"), str(port)]
    with _serving(plane.folder / "logs/noop.log", argv, port, None) as running:
        yield running


@contextmanager
def hung_extender(plane: ControlPlane) -> Iterator[Running]:
    """Run an extender that accepts connections and never answers."""
    port = free_port()
    script = (
        "import asyncio,sys\n"
        "async def main():\n"
        "    server=await asyncio.start_server(lambda r,w: asyncio.sleep(1e9),"
        "'127.0.0.1',int(sys.argv[1]))\n"
        "    await server.serve_forever()\n"
        "asyncio.run(main())"
    )
    process = start_process(
        "hung", [sys.executable, "-c", script, str(port)], plane.folder / "logs/hung.log"
    )
    try:
        time.sleep(1.0)
        process.check()
        yield Running(f"http://127.0.0.1:{port}", port, process.pid, 0.0)
    finally:
        process.kill()


@contextmanager
def _serving(
    log_file: Path, argv: list[str], port: int, environment: Mapping[str, str] | None
) -> Iterator[Running]:
    url = f"http://127.0.0.1:{port}"
    began = time.monotonic()
    process = start_process(log_file.stem, argv, log_file, environment=environment)
    try:
        process.wait_until(lambda: _is_ready(url), "/readyz", _STARTUP_TIMEOUT_S)
        yield Running(url, port, process.pid, time.monotonic() - began)
    finally:
        process.stop()


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz", timeout=2.0, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


def machine() -> dict[str, str]:
    """Return the machine that the figures were measured on."""
    cpu = "unknown"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.split(":", 1)[1].strip()
            break
    cores = subprocess.run(["nproc"], capture_output=True, text=True, check=True).stdout.strip()
    memory_kib = int(Path("/proc/meminfo").read_text().split()[1])
    return {
        "cpu": cpu,
        "cores": cores,
        "memory_gib": f"{memory_kib / 2**20:.0f}",
        "python": sys.version.split()[0],
    }
