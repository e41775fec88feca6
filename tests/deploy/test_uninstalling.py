"""Before the operator goes, what it holds is started; who installs again holds again."""

from __future__ import annotations

import asyncio
import itertools
import json
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from greensched_core.kubernetes_api import ApiAccess, ApiClient
from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.end_to_end.last_release import unpack_last_release
from greensched_testbed.errors import CannotBuildHere
from greensched_testbed.nodes import EqualNodes, create_nodes, delete_nodes, wait_until_ready

if TYPE_CHECKING:
    from tests.deploy.conftest import Installation

pytestmark = [pytest.mark.helm, pytest.mark.controlplane]

RELEASE = "greensched"
EMERGENCY_RELEASE = "greensched-emergency-release"
FORMERLY = "greensched-release-all"  # what release 0.1.0 called it
WITHOUT_OPERATOR = ["--set", "operator.enabled=false"]
PATIENCE_S = 60.0
# kwok plays the hook's pod: it succeeds after that long, whatever its image.
PLAYED = ["--set-string", r"operator.podAnnotations.greensched\.io/testbed-runtime=0.2s"]


async def offer(access: ApiAccess) -> tuple[str, ...]:
    async with ApiClient(access) as api:
        names = await create_nodes(api, [EqualNodes(1, "uninstall", 8.0, 2.0**36)])
        await wait_until_ready(api, names)
    return names


async def withdraw(access: ApiAccess, names: tuple[str, ...]) -> None:
    async with ApiClient(access) as api:
        await delete_nodes(api, names)


@pytest.fixture
def node(control_plane: ControlPlane) -> Iterator[None]:
    """A node for the hook's pod."""
    names = asyncio.run(offer(control_plane.access))
    yield
    asyncio.run(withdraw(control_plane.access, names))


def hold(installation: Installation, name: str, mark: str = "latest_start") -> None:
    """Have a Job that is held, as the webhook leaves it."""
    body = json.loads(installation.job(name, **{mark: "2099-01-01T00:00:00Z"}))
    body["spec"]["suspend"] = True
    made = installation.kubectl("create", "-f", "-", stdin=json.dumps(body))
    assert made.returncode == 0, made.stderr


def emergency_release(
    installation: Installation, name: str = EMERGENCY_RELEASE
) -> dict[str, Any] | None:
    shown = installation.kubectl(
        *["get", "configmap", name, "-n", installation.namespace, "-o", "json"]
    )
    found: dict[str, Any] | None = json.loads(shown.stdout) if shown.returncode == 0 else None
    return found


def uninstall(installation: Installation, *arguments: str) -> None:
    result = installation.helm(
        *["uninstall", RELEASE, "--namespace", installation.namespace, *arguments]
    )
    assert result.returncode == 0, result.stderr


def test_the_charts_account_starts_all_and_its_configmap_goes_with_the_release(
    installation: Installation,
) -> None:
    for name in ("first", "second"):
        hold(installation, name)
    ended = installation.run_to_its_end("emergency-release")
    assert ended.returncode == 0, ended.stderr
    assert "greensched: released 2 held workloads; none is still held\n" in ended.stdout
    for name in ("first", "second"):
        job = installation.get("job", name, installation.users)
        assert job["spec"]["suspend"] is False
        assert job["metadata"]["annotations"]["greensched.io/release-reason"] == "uninstall"
    made = emergency_release(installation)
    assert made is not None
    assert [each["name"] for each in made["metadata"]["ownerReferences"]] == [EMERGENCY_RELEASE]

    uninstall(installation, "--no-hooks")
    installation.upgrade()
    installation.wait_until(
        lambda: emergency_release(installation) is None, "its ConfigMap is gone"
    )


def created(installation: Installation, name: str) -> bool:
    """Create a Job that may wait; tell whether it is held."""
    body = installation.job(name, deadline="6h")
    made = installation.kubectl("create", "-o", "json", "-f", "-", stdin=body)
    assert made.returncode == 0, made.stderr
    return json.loads(made.stdout)["spec"].get("suspend") is True


@pytest.mark.finding(20)
def test_nothing_is_held_for_ever_by_an_upgrade_that_takes_the_operator_away(
    installation: Installation,
) -> None:
    for process in ("controller", "webhook"):
        installation.start(process)
    numbers = itertools.count()
    installation.wait_until(
        lambda: created(installation, f"before-{next(numbers)}"), "the webhook holds"
    )
    ended = installation.run_to_its_end("emergency-release")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    # Helm takes accounts away before webhooks, and with its account goes the hook's ConfigMap.
    gone = installation.kubectl(
        "delete", "serviceaccount", EMERGENCY_RELEASE, "-n", installation.namespace
    )
    assert gone.returncode == 0, gone.stderr
    installation.wait_until(
        lambda: emergency_release(installation) is None, "its ConfigMap is gone"
    )
    time.sleep(1.0)  # until the webhook has seen it
    assert not any(created(installation, f"after-{each}") for each in range(10))
    installation.upgrade(*WITHOUT_OPERATOR, "--timeout", "20s")
    installation.stop()
    shown = installation.kubectl("get", "jobs", "-n", installation.users, "-o", "json")
    held = [each["metadata"]["name"] for each in json.loads(shown.stdout)["items"]
            if each["spec"].get("suspend")]  # fmt: skip
    assert held == []
    installation.upgrade()
    assert len(installation.ca_bundles()) == 2, "who installs again has the webhook again"


def test_the_documented_command_tells_what_is_still_held(
    installation: Installation, repository: Path
) -> None:
    hold(installation, "waiting")
    lines = (repository / "docs/install.md").read_text().splitlines()
    (line,) = (line for line in lines if "latest-start)]" in line)
    program, *arguments = shlex.split(line, comments=True)
    shown = installation.kubectl(*arguments)
    assert (program, shown.stderr) == ("kubectl", "")
    assert f"Job {installation.users}/waiting" in shown.stdout.splitlines()


@pytest.mark.usefixtures("node")
def test_helm_runs_it_before_an_uninstall(installation: Installation) -> None:
    installation.upgrade(*PLAYED)
    uninstall(installation, "--timeout", "60s")
    left = installation.kubectl("get", "jobs,deployments", "-n", installation.namespace)
    assert left.stdout == ""


def has_run(installation: Installation) -> bool:
    """Return whether a Job of the emergency release has completed."""
    events = installation.kubectl(
        *["get", "events", "-n", installation.namespace, "-o", "json"],
        *["--field-selector", f"involvedObject.kind=Job,involvedObject.name={EMERGENCY_RELEASE}"],
    )
    return "Completed" in {each["reason"] for each in json.loads(events.stdout)["items"]}


def is_gone(installation: Installation, account: str) -> bool:
    shown = installation.kubectl("get", "serviceaccount", account, "-n", installation.namespace)
    return "NotFound" in shown.stderr


@pytest.mark.usefixtures("node")
def test_helm_runs_it_before_an_upgrade_that_takes_the_operator_away(
    installation: Installation,
) -> None:
    installation.upgrade(*PLAYED)
    installation.upgrade(*WITHOUT_OPERATOR, *PLAYED, "--timeout", "60s")
    assert has_run(installation)
    assert is_gone(installation, EMERGENCY_RELEASE)
    installation.upgrade(*WITHOUT_OPERATOR, "--timeout", "20s")


@pytest.fixture
def last_release(
    installation: Installation, repository: Path, tmp_path: Path
) -> Iterator[Installation]:
    """The chart of the last release instead of this one, with a Job that it holds."""
    try:
        unpack_last_release(repository, tmp_path / "last-release")
    except CannotBuildHere as fault:
        pytest.skip(str(fault))
    chart = str(tmp_path / "last-release/deploy/helm/greensched")
    uninstall(installation, "--no-hooks")
    installation.upgrade("--set", "crds.install=false", *PLAYED, chart=chart)
    hold(installation, "held-before", mark="hold_until")
    yield installation
    installation.kubectl("delete", "job", "held-before", "-n", installation.users)


def planned_hooks(installation: Installation) -> dict[str, dict[str, Any]]:
    """Return what an upgrade would create first if it takes the operator away, by kind."""
    told = installation.upgrade(*WITHOUT_OPERATOR, "--dry-run=server", "--output", "json")
    hooks = [each for each in json.loads(told)["hooks"] if "pre-upgrade" in each["events"]]
    return {each["kind"]: yaml.safe_load(each["manifest"]) for each in hooks}


def run_as_hook(installation: Installation, job: dict[str, Any]) -> str:
    """Run a hook's container as its account, until it ends; return its output."""
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    process = pod["serviceAccountName"].removeprefix(f"{RELEASE}-")
    told = {each["name"]: each["value"] for each in container["env"] if "value" in each}
    ended = subprocess.run(
        [sys.executable, "-m", "greensched_operator", *container["args"]],
        env={**installation.environment(process, 0), **told},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_what_the_last_release_held_is_started_by_an_upgrade_without_operator(
    last_release: Installation,
) -> None:
    hooks = planned_hooks(last_release)
    own = ("-n", last_release.namespace)
    made = last_release.kubectl("create", *own, "-f", "-", stdin=json.dumps(hooks["ConfigMap"]))
    assert made.returncode == 0, made.stderr
    told = run_as_hook(last_release, hooks["Job"])
    assert "released 1 held workloads; none is still held" in told
    job = last_release.get("job", "held-before", last_release.users)
    assert job["spec"]["suspend"] is False
    for name in (FORMERLY, EMERGENCY_RELEASE):
        made_now = emergency_release(last_release, name)
        assert made_now is not None
        assert [each["name"] for each in made_now["metadata"]["ownerReferences"]] == [FORMERLY]


@pytest.mark.usefixtures("node")
def test_helm_runs_it_before_an_upgrade_from_the_last_release_too(
    last_release: Installation,
) -> None:
    last_release.upgrade(*WITHOUT_OPERATOR, *PLAYED, "--timeout", "60s")
    assert has_run(last_release)
    assert is_gone(last_release, FORMERLY)
    last_release.wait_until(
        lambda: emergency_release(last_release, FORMERLY) is None, "its ConfigMap is gone"
    )


@pytest.mark.usefixtures("node")
def test_an_upgrade_from_the_last_release_with_the_operator_runs_nothing_first(
    last_release: Installation,
) -> None:
    last_release.upgrade(*PLAYED, "--timeout", "60s")
    assert not has_run(last_release)
    assert last_release.get("job", "held-before", last_release.users)["spec"]["suspend"] is True
