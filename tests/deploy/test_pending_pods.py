"""The commands that the documents hand out, run on a real API server as they stand."""

import asyncio
import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from greensched_testbed.controlplane import ControlPlane

pytestmark = [pytest.mark.helm, pytest.mark.controlplane]

ROOT = Path(__file__).resolve().parents[2]
INSTALL = (ROOT / "docs" / "install.md").read_text()
PATIENCE_S = 60.0
Shell = Callable[[str], str]


@pytest.fixture
def shell(control_plane: ControlPlane) -> Shell:
    """Run a line as a reader would paste it; return what it prints."""
    environment = {
        "PATH": f"{control_plane.programs}:{os.environ['PATH']}",
        "HOME": str(control_plane.folder / "home"),  # kubectl keeps a cache there
        "KUBECONFIG": str(control_plane.kubeconfig),
    }

    def run(line: str) -> str:
        ran = subprocess.run(["bash", "-c", line], env=environment, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    return run


@pytest.fixture
def notes(shell: Shell) -> str:
    """What Helm prints after an installation."""
    chart = ROOT / "deploy" / "helm" / "greensched"
    # An uninstalled release leaves its CRD, which another test's may have been.
    options = "--namespace greensched --dry-run=server --take-ownership"
    return shell(f"helm install greensched {chart} {options}")


def line_with(text: str, words: str) -> str:
    (found,) = (line.strip() for line in text.splitlines() if words in line)
    return found


def pod(name: str, scheduler: str) -> str:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "9999"}}}
    spec = {"schedulerName": scheduler, "containers": [container]}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})


async def test_who_should_place_a_pending_pod_is_shown_beside_what_was_said_of_it(
    shell: Shell, notes: str, namespace: str
) -> None:
    line = line_with(INSTALL, "status.phase=Pending")
    assert line == line_with(notes, "status.phase=Pending")
    shell(f"kubectl create -n {namespace} -f - <<< '{pod('misspelt', 'grensched')}'")
    shell(f"kubectl create -n {namespace} -f - <<< '{pod('too-big', 'default-scheduler')}'")

    def rows() -> dict[str, str]:
        found = (row.split(maxsplit=4) for row in shell(line).splitlines())
        return {row[1]: " ".join(row[2:]) for row in found if row[0] == namespace}

    async with asyncio.timeout(PATIENCE_S):
        while "available" not in rows()["too-big"]:  # nothing tells us: we poll
            await asyncio.sleep(0.2)
    assert rows()["misspelt"] == "grensched <none> <none>"
    assert re.match(r"default-scheduler <none> .*nodes? .*available", rows()["too-big"])
    events = shell(line_with(INSTALL, "reason=FailedScheduling").partition("#")[0])
    assert f"{namespace} " in events
    assert "misspelt" not in events


async def test_the_first_pod_of_the_notes_asks_for_something(
    shell: Shell, notes: str, namespace: str
) -> None:
    line = line_with(notes, "kubectl run first")
    made: dict[str, Any] = yaml.safe_load(
        shell(f"{line} --namespace {namespace} --dry-run=server -o yaml")
    )
    assert made["spec"]["schedulerName"] == "greensched"
    (container,) = made["spec"]["containers"]
    assert container["resources"]["requests"] == {"cpu": "2", "memory": "1Gi"}
