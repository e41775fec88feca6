"""Runs the end-to-end tests on kind's five nodes, on Docker if available, else on our engine.

Results and figures go to `build/e2e/kind.xml` and `build/e2e/kind.json`.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from greensched_core.errors import BadInput
from greensched_testbed.binaries import KIND, built, control_plane_programs
from greensched_testbed.commands import run_command
from greensched_testbed.end_to_end.counted import read_results
from greensched_testbed.end_to_end.foreign_cluster import (
    EXTENDER_IMAGE,
    KUBECONFIG,
    OPERATOR_IMAGE,
    SHELL_IMAGE_VARIABLE,
)
from greensched_testbed.end_to_end.real_cluster import image_archives
from greensched_testbed.end_to_end.release import NAME, NAMESPACE, REMOVALS
from greensched_testbed.errors import CommandFailed, NotReady
from greensched_testbed.kind.engine import Engine, engine
from greensched_testbed.kind.node_image import node_image, node_image_name
from greensched_testbed.real_nodes import program_images
from greensched_testbed.real_nodes.machine_state import machine_state
from greensched_testbed.requirements import ENGINE, IMAGES, missing

# Runs a command in the checkout with additional variables, and returns its exit status.
RunCommand = Callable[[Sequence[str | Path], Mapping[str, str]], int]

_CLUSTER = "greensched"  # of up.sh and down.sh
_NETWORK = "network kind"
_SCRIPTS = Path("deploy/kind")
_KEPT = Path("build/kind")
_RESULTS = Path("build/e2e")


def run_tests(checkout: Path, arguments: Sequence[str]) -> int:
    """Create the cluster by `up.sh`, run the tests, and remove it; return the exit status.

    If this machine has neither Docker nor our engine's requirements, print so and run nothing.
    Raises BadInput if a cluster of `up.sh` exists already, which a user may be using.
    """
    (checkout / _RESULTS).mkdir(parents=True, exist_ok=True)
    if has_docker():
        return _on_docker(checkout, arguments)
    gaps = missing(IMAGES, ENGINE)
    if gaps:
        print(f"kind: skipped: Docker does not answer, and our own engine needs {'; '.join(gaps)}")
        return 0
    return _on_our_engine(checkout, arguments)


def has_docker(timeout_s: float = 30.0) -> bool:
    """Say whether there is a Docker that answers in time."""
    if shutil.which("docker") is None:
        return False
    try:
        run_command("docker", "info", environment=os.environ, timeout_s=timeout_s)
    except (CommandFailed, NotReady):
        return False
    return True


def _on_docker(checkout: Path, arguments: Sequence[str]) -> int:
    print("kind: using this machine's Docker and kind's node image", flush=True)
    ours = {**os.environ, "PATH": _search_path(os.environ["PATH"])}
    if _CLUSTER in run_command("kind", "get", "clusters", environment=ours).split():
        raise BadInput(
            f"kind's cluster {_CLUSTER} exists already. The tests would take it over and remove it."
            f" Remove it yourself first: {_SCRIPTS / 'down.sh'}"
        )

    def run(command: Sequence[str | Path], more: Mapping[str, str]) -> int:
        return subprocess.run(command, cwd=checkout, env={**ours, **more}, check=False).returncode

    before, began = _things_of_kind(ours), time.monotonic()
    try:
        status, figures = _test(run, checkout, arguments, {})
    finally:
        closing = time.monotonic()
        run([_SCRIPTS / "down.sh"], {})
        if _NETWORK in _things_of_kind(ours) - before:  # kind itself leaves it
            run(["docker", "network", "rm", "kind"], {})
    left = sorted(_things_of_kind(ours) - before)
    _write(checkout, figures | _remains(began, closing, left))
    return status or bool(left)


def _things_of_kind(environment: Mapping[str, str]) -> set[str]:
    """Return what Docker has of our cluster and of kind: containers and the network, by line."""
    ours = f"label=io.x-k8s.kind.cluster={_CLUSTER}"
    listed = (
        ("ps", "--all", "--filter", ours, "--format", "container {{.Names}}"),
        ("network", "ls", "--filter", "name=^kind$", "--format", "network {{.Name}}"),
    )
    return {
        line
        for command in listed
        for line in run_command("docker", *command, environment=environment).splitlines()
    }


def _remains(began: float, closing: float, left: Sequence[str]) -> dict[str, Any]:
    """Print what was left behind; return how much, and how long all took, and removing it."""
    print("\n".join([*left, f"kind: left behind: {len(left)}"]))
    ended = time.monotonic()
    return {
        "kind_removed_s": round(ended - closing, 1),
        "kind_s": round(ended - began, 1),
        "kind_left_behind": len(left),
    }


def _on_our_engine(checkout: Path, arguments: Sequence[str]) -> int:
    print("kind: Docker does not answer; using our own engine and node image", flush=True)
    archives = image_archives(checkout)
    extender, operator = archives
    loaded = [node_image(), *archives.values()]
    before, began = machine_state(), time.monotonic()
    with engine() as running:
        for each in loaded:
            running.load(each)
        given = {
            "GREENSCHED_NODE_IMAGE": node_image_name(),
            "GREENSCHED_EXTENDER_IMAGE": extender,
            "GREENSCHED_OPERATOR_IMAGE": operator,
            SHELL_IMAGE_VARIABLE: program_images.SHELL_IMAGE,
        }
        run = _run_inside(running, checkout)
        status, figures = _test(run, checkout, arguments, given)
        closing = time.monotonic()
    left = before.differences(machine_state())
    _write(checkout, figures | _remains(began, closing, left))
    return status or bool(left)


def _run_inside(running: Engine, checkout: Path) -> RunCommand:
    search_path = _search_path(running.environment["PATH"])

    def run(command: Sequence[str | Path], more: Mapping[str, str]) -> int:
        return running.run(command, checkout, {"PATH": search_path, **more})

    return run


def _search_path(known: str) -> str:
    """Return the PATH with the machine's kind, kubectl and helm, else ours."""
    places = [known]
    if shutil.which("kind", path=known) is None:
        places.append(str(built(KIND)))
    if any(shutil.which(name, path=known) is None for name in ("kubectl", "helm")):
        places.append(str(control_plane_programs()))
    return os.pathsep.join(places)


def _test(
    run: RunCommand, checkout: Path, arguments: Sequence[str], given: Mapping[str, str]
) -> tuple[int, dict[str, Any]]:
    """Create the cluster, run the tests, and return pytest's status and the figures."""
    results = checkout / _RESULTS / "kind.xml"
    results.unlink(missing_ok=True)
    began = time.monotonic()
    status = run([_SCRIPTS / "up.sh"], given)
    figures: dict[str, Any] = {"kind_up_s": round(time.monotonic() - began, 1)}
    if status == 0:
        extender, operator = (checkout / _KEPT / "images").read_text().split()
        variables = {
            **given,
            KUBECONFIG: str(checkout / _KEPT / "kubeconfig"),
            EXTENDER_IMAGE: extender,
            OPERATOR_IMAGE: operator,
        }
        _uninstall(run, variables)
        command = [sys.executable, "-m", "pytest", "-m", "e2e", "-rs", "--durations=10"]
        status = run([*command, f"--junitxml={results}", *arguments, "tests/e2e"], variables)
    return status, {**figures, **read_results(results).figures("kind_e2e")}


def _uninstall(run: RunCommand, variables: Mapping[str, str]) -> None:
    """Remove the release of `up.sh` and its remains, so that tests install from scratch."""
    kubeconfig = {"KUBECONFIG": variables[KUBECONFIG]}
    space = f"--namespace={NAMESPACE}"
    run(["helm", "uninstall", NAME, space, "--wait"], kubeconfig)
    for each in REMOVALS:
        run(["kubectl", *each], kubeconfig)


def _write(checkout: Path, figures: Mapping[str, Any]) -> None:
    text = json.dumps(figures, indent=2)
    (checkout / _RESULTS / "kind.json").write_text(f"{text}\n")
    print(text)
