"""The chart's TLS options between a real kube-scheduler and a real extender."""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest
import yaml
from cryptography import x509

from greensched_core import labels
from greensched_testbed.certificates import Authority, KeyPair
from greensched_testbed.chart import CHART, RELEASE
from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.demo.cluster import GreenSchedProcesses
from greensched_testbed.ports import free_ports

if TYPE_CHECKING:
    from tests.placement.conftest import Scene

pytestmark = pytest.mark.controlplane

SCHEDULER = "encrypted"
PATIENCE_S = 90.0


@dataclass(frozen=True)
class Encrypted:
    """An extender that serves only those who show a certificate of its authority."""

    port: int
    authority: Authority
    client: KeyPair

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"https://127.0.0.1:{self.port}"

    def context(self, *, shows_certificate: bool) -> ssl.SSLContext:
        """What a caller needs to trust it, and to be trusted."""
        context = ssl.create_default_context(cafile=self.authority.certificate_file)
        if shows_certificate:
            context.load_cert_chain(self.client.certificate, self.client.key)
        return context

    def is_ready(self) -> bool:
        """Say whether it answers that it is ready."""
        context = self.context(shows_certificate=True)
        try:
            reply = httpx.get(f"{self.url}/readyz", verify=context, trust_env=False)
        except httpx.HTTPError:
            return False
        return reply.status_code == 200

    async def served_serial(self) -> int:
        """Return the serial number of the certificate that a new connection is shown."""
        context = self.context(shows_certificate=True)
        _, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=context)
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        return x509.load_der_x509_certificate(shown).serial_number


@pytest.fixture(scope="module")
def encrypted(
    control_plane: ControlPlane,
    greensched: GreenSchedProcesses,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Encrypted]:
    """An extender with certificates, and a scheduler with the chart's configuration for it."""
    folder = tmp_path_factory.mktemp("tls")
    authority = Authority(folder)
    server = authority.issue_server("extender", ("127.0.0.1", "extender.test"))
    port, explain_port = free_ports(2)
    extender = Encrypted(port, authority, authority.issue_client("scheduler", "scheduler"))
    process = control_plane.processes.start(
        "extender-tls",
        [sys.executable, "-m", "greensched_extender"],
        {
            "PATH": str(Path(sys.executable).parent),
            "GREENSCHED_EXTENDER_KUBECONFIG": str(control_plane.kubeconfig),
            "GREENSCHED_EXTENDER_LISTEN_HOST": "127.0.0.1",
            "GREENSCHED_EXTENDER_LISTEN_PORT": str(port),
            "GREENSCHED_EXTENDER_EXPLAIN_PORT": str(explain_port),
            "GREENSCHED_EXTENDER_FILTER_ENABLED": "true",
            "GREENSCHED_EXTENDER_SCHEDULER_NAMES": json.dumps([SCHEDULER]),
            "GREENSCHED_EXTENDER_TLS_CERT_FILE": str(server.certificate),
            "GREENSCHED_EXTENDER_TLS_KEY_FILE": str(server.key),
            "GREENSCHED_EXTENDER_TLS_CLIENT_CA_FILE": str(authority.certificate_file),
        },
    )
    process.wait_until(extender.is_ready, "/readyz", PATIENCE_S)
    control_plane.start_scheduler(
        SCHEDULER, configuration(control_plane, extender), control_plane.kubeconfig
    )
    yield extender
    control_plane.stop(SCHEDULER)
    control_plane.stop("extender-tls")


def configuration(plane: ControlPlane, extender: Encrypted) -> str:
    """The chart's configuration for TLS; only where the mounted files lie is changed."""
    rendered = plane.helm(
        *["template", "tls", str(CHART), "--namespace", RELEASE],
        *["--show-only", "templates/scheduler/configmap.yaml"],
        *["--set", f"scheduler.extenderUrl={extender.url},scheduler.name={SCHEDULER}"],
        *["--set", "tls.enabled=true,tls.existingSecret=s,tls.serverName=extender.test"],
        *["--set", "tls.client.enabled=true,tls.client.existingSecret=c"],
        *["--set", "extender.powerLimits.enabled=true"],
    )
    config: str = yaml.safe_load(rendered)["data"]["config.yaml"]
    for mounted, here in (
        ("/etc/greensched/extender-ca/ca.crt", extender.authority.certificate_file),
        ("/etc/greensched/client/tls.crt", extender.client.certificate),
        ("/etc/greensched/client/tls.key", extender.client.key),
    ):
        assert mounted in config
        config = config.replace(mounted, str(here))
    return config


async def metric(extender: Encrypted, series: str) -> int:
    """Return one of the extender's metrics."""
    context = extender.context(shows_certificate=True)
    async with httpx.AsyncClient(verify=context, trust_env=False) as http:
        lines = (await http.get(f"{extender.url}/metrics")).text.splitlines()
    named = f"greensched_extender_{series} "
    return sum(int(float(line.removeprefix(named))) for line in lines if line.startswith(named))


async def scored_pods(extender: Encrypted) -> int:
    """How many pods the extender has given scores for."""
    return await metric(extender, 'requests_total{outcome="ok",verb="prioritize"}')


async def offer_phantom(extender: Encrypted, node: str, *, shows_certificate: bool) -> bool:
    """Ask, as the scheduler would, whether a pod that does not exist may go to a node."""
    container = {"name": "main", "resources": {"requests": {"cpu": "8"}}}
    pod = {"metadata": {"name": "phantom", "namespace": "default", "uid": "phantom"},
           "spec": {"schedulerName": SCHEDULER, "containers": [container]}}  # fmt: skip
    context = extender.context(shows_certificate=shows_certificate)
    async with httpx.AsyncClient(verify=context, trust_env=False) as http:
        try:
            reply = await http.post(
                f"{extender.url}/filter", json={"Pod": pod, "NodeNames": [node]}
            )
        except httpx.TransportError:
            return False
    return reply.is_success


async def test_pods_are_scored_over_tls_and_still_after_the_certificate_was_renewed(
    scene: Scene, encrypted: Encrypted
) -> None:
    frugal, _ = await scene.offer(
        scene.machine(50, 150), scene.machine(50, 400), scheduler=SCHEDULER
    )
    assert await scene.place("before", scheduler=SCHEDULER) == [frugal]
    assert await scored_pods(encrypted) == 1

    first = await encrypted.served_serial()
    encrypted.authority.issue_server("extender", ("127.0.0.1", "extender.test"))
    async with asyncio.timeout(PATIENCE_S):
        while await encrypted.served_serial() == first:
            await asyncio.sleep(0.2)
    assert await scene.place("after", scheduler=SCHEDULER) == [frugal]
    assert await scored_pods(encrypted) == 2


async def test_a_caller_without_a_certificate_is_not_served(encrypted: Encrypted) -> None:
    """Under TLS 1.3 the caller's handshake ends before the server has looked for a certificate.

    So the refusal meets the request on its way: as an alert, or, where the closed connection
    was noticed first, as a reset or an end without a word.
    """
    refusals = (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError)
    stranger, known = (encrypted.context(shows_certificate=shows) for shows in (False, True))
    async with httpx.AsyncClient(verify=stranger, trust_env=False) as http:
        with pytest.raises(refusals):
            await http.get(f"{encrypted.url}/healthz")
    async with httpx.AsyncClient(verify=known, trust_env=False) as http:
        assert (await http.get(f"{encrypted.url}/healthz")).is_success


@pytest.mark.finding(5)
async def test_pods_that_do_not_exist_fill_no_budget_of_a_node(
    scene: Scene, encrypted: Encrypted
) -> None:
    limited = {labels.POWER_BUDGET_WATTS: "120"}  # room for 8 of 16 cores
    machine = scene.machine(100, 180, annotations=limited)
    (node,) = await scene.offer(machine, scheduler=SCHEDULER)
    assert not await offer_phantom(encrypted, node, shows_certificate=False)
    assert await scene.place("real", cpu=8, scheduler=SCHEDULER) == [node]
    assert await metric(encrypted, "provisional_pods") == 0
    # With the scheduler's own certificate it would have been counted: so nobody else may call.
    assert await offer_phantom(encrypted, node, shows_certificate=True)


@pytest.mark.finding(5)
def test_an_extender_that_anybody_can_reach_keeps_no_power_budgets(
    control_plane: ControlPlane,
) -> None:
    port, explain_port = free_ports(2)
    ended = subprocess.run(
        [sys.executable, "-m", "greensched_extender"],
        env={
            "PATH": str(Path(sys.executable).parent),
            "GREENSCHED_EXTENDER_KUBECONFIG": str(control_plane.kubeconfig),
            "GREENSCHED_EXTENDER_LISTEN_PORT": str(port),
            "GREENSCHED_EXTENDER_EXPLAIN_PORT": str(explain_port),
            "GREENSCHED_EXTENDER_FILTER_ENABLED": "true",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )
    assert ended.returncode == 2
    assert "filter_enabled needs tls_client_ca_file" in ended.stderr
