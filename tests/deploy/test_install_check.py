"""`helm test`: what it asks of an installation on a real API server, and that nothing is left."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from greensched_core.kubernetes_api import ApiAccess, ApiClient
from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.nodes import EqualNodes, create_nodes, delete_nodes, wait_until_ready
from greensched_testbed.ports import free_port

if TYPE_CHECKING:
    from tests.deploy.conftest import Installation

pytestmark = [pytest.mark.helm, pytest.mark.controlplane]

RELEASE = "greensched"
# kwok plays the check's pod: it succeeds after that long, whatever its image.
PLAYED = ["--set-string", r"operator.podAnnotations.greensched\.io/testbed-runtime=0.2s"]
ONLY_HOLDING = {
    "extender_url": "",
    "scheduler_name": "",
    "limit_s": "2",
    "rights": "[]",
    "policy_mode": "",
}


async def offer(access: ApiAccess) -> tuple[str, ...]:
    async with ApiClient(access) as api:
        names = await create_nodes(api, [EqualNodes(1, "checked", 8.0, 2.0**36)])
        await wait_until_ready(api, names)
    return names


async def withdraw(access: ApiAccess, names: tuple[str, ...]) -> None:
    async with ApiClient(access) as api:
        await delete_nodes(api, names)


@pytest.fixture(scope="module")
def node(control_plane: ControlPlane) -> Iterator[None]:
    """A node for the pods that are tried, and for the hook's own."""
    names = asyncio.run(offer(control_plane.access))
    yield
    asyncio.run(withdraw(control_plane.access, names))


def hooks(installation: Installation) -> list[dict[str, Any]]:
    """Return what `helm test` would create, as Helm keeps it with the release."""
    kept = installation.helm("get", "hooks", RELEASE, "--namespace", installation.namespace)
    assert kept.returncode == 0, kept.stderr
    found = [each for each in yaml.safe_load_all(kept.stdout) if each]
    return [each for each in found if each["metadata"]["annotations"]["helm.sh/hook"] == "test"]


@pytest.fixture
def rights(installation: Installation) -> Iterator[dict[str, str]]:
    """Everything of the hook but its pod, and the variables that the pod would have."""
    installation.upgrade()
    (pod,) = (each for each in hooks(installation) if each["kind"] == "Pod")
    others = [each for each in hooks(installation) if each["kind"] != "Pod"]
    order = sorted(
        others, key=lambda each: int(each["metadata"]["annotations"]["helm.sh/hook-weight"])
    )
    made = installation.kubectl("create", "-f", "-", stdin=yaml.safe_dump_all(order))
    assert made.returncode == 0, made.stderr
    (container,) = pod["spec"]["containers"]
    yield {each["name"]: each["value"] for each in container["env"] if "value" in each}
    installation.kubectl("delete", "-f", "-", stdin=yaml.safe_dump_all(order))


def checked(
    installation: Installation, told: dict[str, str], **more: str
) -> subprocess.CompletedProcess[str]:
    """Run the check as the hook's account until it ends."""
    changed = {f"GREENSCHED_CHECK_{name.upper()}": value for name, value in more.items()}
    environment = {**installation.environment("check", 0), **told, **changed}
    return subprocess.run(
        [sys.executable, "-m", "greensched_operator", "check-install"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )


def own_namespace(installation: Installation) -> dict[str, Any]:
    (found,) = (each for each in hooks(installation) if each["kind"] == "Namespace")
    meta: dict[str, Any] = found["metadata"]
    return meta


def left(installation: Installation) -> str:
    name = own_namespace(installation)["name"]
    return installation.kubectl("get", "jobs,pods", "-n", name, "-o", "name").stdout


def line(report: str, title: str) -> str:
    (found,) = (each for each in report.splitlines() if f"  {title}: " in each)
    return found


@pytest.fixture
def answering(installation: Installation) -> Iterator[str]:
    """The chart's extender, and its scheduler, as processes; the extender's address."""
    plane, port = installation.plane, free_port()
    url = f"http://127.0.0.1:{port}"
    told = installation.get("configmap", "greensched-extender")["data"]
    account = plane.service_account_dir(installation.namespace, "greensched-extender")
    environment = {
        **told,
        **plane.in_cluster_environment(),
        "PATH": str(Path(sys.executable).parent),
        "GREENSCHED_EXTENDER_LISTEN_HOST": "127.0.0.1",
        "GREENSCHED_EXTENDER_LISTEN_PORT": str(port),
        "GREENSCHED_EXTENDER_EXPLAIN_PORT": str(free_port()),
        "GREENSCHED_EXTENDER_SERVICEACCOUNT_DIR": str(account),
    }
    plane.processes.start("checked", [sys.executable, "-m", "greensched_extender"], environment)
    config = installation.get("configmap", "greensched-scheduler")["data"]["config.yaml"]
    service = f"http://greensched-extender.{installation.namespace}.svc:8888"
    identity = plane.kubeconfig_for_service_account(installation.namespace, "greensched-scheduler")
    plane.start_scheduler("checked-scheduler", config.replace(service, url), identity)
    yield url
    plane.stop("checked-scheduler")
    plane.stop("checked")


@pytest.mark.usefixtures("node")
def test_a_healthy_installation_passes_every_check_and_keeps_nothing_of_it(
    installation: Installation, rights: dict[str, str], answering: str
) -> None:
    for process in ("controller", "webhook"):
        installation.start(process)
    ended = checked(installation, rights, extender_url=answering)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.splitlines()[-1] == "6 of 6 checks passed"
    assert "greensched put it on checked-" in line(ended.stdout, "the scheduler places a pod")
    assert "reason: run-now" in line(ended.stdout, "a Job is held, and released")
    installation.wait_until(lambda: left(installation) == "", "its work is gone")


def test_what_is_broken_is_named_with_what_to_do_and_nothing_is_left(
    installation: Installation, rights: dict[str, str]
) -> None:
    own = ("-n", installation.namespace)
    for broken in (("clusterrolebinding", "greensched-releaser"), ("greenpolicy", "default", *own)):
        gone = installation.kubectl("delete", *broken)
        assert gone.returncode == 0, gone.stderr
    nobody = f"http://127.0.0.1:{free_port()}"
    ended = checked(installation, rights, extender_url=nobody, limit_s="2")
    report = ended.stdout
    assert (ended.returncode, report.splitlines()[-1]) == (1, "0 of 6 checks passed")
    lines = report.splitlines()
    advice = {each: lines[place + 1] for place, each in enumerate(lines) if "FAILED" in each}
    assert all(text.startswith("        -> ") for text in advice.values())
    missing = line(report, "the service accounts have their rights")
    assert "greensched-releaser list jobs.batch" in missing
    policy = line(report, "the cluster's GreenPolicy exists")
    assert f"there is no GreenPolicy default in namespace {installation.namespace}" in policy
    assert "get events --field-selector reason=PolicyRefused" in advice[policy]
    unknown = advice[line(report, "the API server calls the webhook")]
    assert f"kubectl -n {installation.namespace} logs deployment/greensched-controller" in unknown
    assert "no scheduler tried to place the pod" in line(report, "the scheduler places a pod")
    installation.wait_until(lambda: left(installation) == "", "its work is gone")


def test_a_policy_that_has_another_mode_than_the_chart_is_reported(
    installation: Installation, rights: dict[str, str]
) -> None:
    title = "the cluster's GreenPolicy exists"
    installation.upgrade()  # the kind is known now: Helm makes it
    told = {**ONLY_HOLDING, "policy_mode": "enforce"}
    assert "ok  " in line(checked(installation, rights, **told).stdout, title)
    changed = ("--type=merge", "-p", '{"spec":{"mode":"off"}}', "-n", installation.namespace)
    assert installation.kubectl("patch", "greenpolicy", "default", *changed).returncode == 0
    changed_by_hand = line(checked(installation, rights, **told).stdout, title)
    assert changed_by_hand.startswith("ok  "), "that is its user's right"
    assert "mode off; the chart's values: enforce" in changed_by_hand


def test_what_the_webhook_said_is_reported_as_the_reason(
    installation: Installation, rights: dict[str, str]
) -> None:
    for process in ("controller", "webhook"):
        installation.start(process)
    installation.wait_until(lambda: all(installation.ca_bundles()), "the webhook is called")
    installation.plane.stop("installed-controller")  # nobody is left who would start what is held
    told = installation.get("configmap", "greensched-operator")["data"]
    sign = ("lease", told["GREENSCHED_OPERATOR_HEARTBEAT_LEASE"], "-n", installation.namespace)
    assert installation.kubectl("delete", *sign).returncode == 0  # it would count for a minute
    lines = checked(installation, rights, **ONLY_HOLDING).stdout.splitlines()
    for title in ("the API server calls the webhook", "a Job is held, and released"):
        failed = line("\n".join(lines), title)
        assert "not held: nothing could start it again" in failed
        advice = lines[lines.index(failed) + 1]
        assert "greensched-controller" in advice and "the releaser" in advice
        assert "firewall" not in advice


def test_the_emergency_release_is_reported_as_the_reason(
    installation: Installation, rights: dict[str, str]
) -> None:
    configmap = ("configmap", "greensched-emergency-release", "-n", installation.namespace)
    assert installation.kubectl("create", *configmap).returncode == 0
    report = checked(installation, rights, **ONLY_HOLDING).stdout
    assert report.splitlines()[0].startswith("skip    the extender answers at its Service: ")
    assert "delete configmap greensched-emergency-release" in report
    installation.kubectl("delete", *configmap)


@pytest.fixture
def foreign(installation: Installation) -> Iterator[str]:
    """A namespace of somebody else's, called like the check, with a ConfigMap in it."""
    name = f"{RELEASE}-check"
    for made in (("namespace", name), ("configmap", "theirs", "-n", name)):
        assert installation.kubectl("create", *made).returncode == 0
    yield name
    installation.kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=false")


@pytest.mark.usefixtures("node")
def test_helm_test_takes_all_of_it_away_and_nothing_of_anybody_elses(
    installation: Installation, foreign: str
) -> None:
    installation.upgrade(*PLAYED)
    ran = installation.helm(
        *["test", RELEASE, "--namespace", installation.namespace, "--timeout", "90s"]
    )
    assert ran.returncode == 0, ran.stderr
    assert "Succeeded" in ran.stdout
    shown = installation.kubectl(
        *["get", "namespaces,clusterroles,clusterrolebindings,roles,serviceaccounts,pods", "-A"],
        *["-l", "app.kubernetes.io/component=check", "-o", "name"],
    )
    assert shown.stdout == ""
    assert installation.get("namespace", foreign)["status"]["phase"] == "Active"
    assert installation.get("configmap", "theirs", foreign)


def test_no_namespace_is_deleted_before_the_check_has_made_it(installation: Installation) -> None:
    policy = own_namespace(installation)["annotations"]["helm.sh/hook-delete-policy"]
    assert policy.split(",") == ["hook-succeeded", "hook-failed"]
