"""The end-to-end tests over kind's five nodes, on Docker where there is one, else on our engine.

What they print and what is counted goes to `build/e2e/kind.xml` and `build/e2e/kind.json`.
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

from greensched_testbed.binaries import KIND, built, control_plane_programs
from greensched_testbed.end_to_end.counted import read_results
from greensched_testbed.end_to_end.foreign_cluster import (
    EXTENDER_IMAGE,
    KUBECONFIG,
    OPERATOR_IMAGE,
    SHELL_IMAGE,
)
from greensched_testbed.end_to_end.real_cluster import image_archives
from greensched_testbed.end_to_end.release import NAME, NAMESPACE
from greensched_testbed.kind.engine import Engine, engine
from greensched_testbed.kind.node_image import node_image, node_image_name
from greensched_testbed.real_nodes import program_images
from greensched_testbed.real_nodes.machine_state import machine_state
from greensched_testbed.requirements import ENGINE, IMAGES, missing

# Runs a command in the checkout, with these variables more, and returns its status.
RunCommand = Callable[[Sequence[str | Path], Mapping[str, str]], int]

_SCRIPTS = Path("deploy/kind")
_KEPT = Path("build/kind")
_RESULTS = Path("build/e2e")
# They start what they test, and are no tests of the cluster that is named.
_OTHERS = tuple(
    f"tests/e2e/test_{name}.py"
    for name in ("a_cluster_kept", "a_cluster_never_finished", "an_engine_killed")
)


def run_tests(checkout: Path, arguments: Sequence[str]) -> int:
    """Make the cluster by `up.sh`, run the tests on it and remove it; return the exit status.

    Where this machine has neither Docker nor what our engine needs, say so and run nothing.
    """
    (checkout / _RESULTS).mkdir(parents=True, exist_ok=True)
    if _has_docker():
        return _on_docker(checkout, arguments)
    lacks = missing(IMAGES, ENGINE)
    if lacks:
        print(f"kind: no Docker answers here, and our own engine needs {'; '.join(lacks)}: skipped")
        return 0
    return _on_our_engine(checkout, arguments)


def _has_docker() -> bool:
    if shutil.which("docker") is None:
        return False
    asked = subprocess.run(["docker", "info"], capture_output=True, timeout=30, check=False)
    return asked.returncode == 0


def _on_docker(checkout: Path, arguments: Sequence[str]) -> int:
    print("kind: on this machine's Docker, with kind's own node image", flush=True)

    def run(command: Sequence[str | Path], more: Mapping[str, str]) -> int:
        environment = {**os.environ, "PATH": _search_path(os.environ["PATH"]), **more}
        return subprocess.run(command, cwd=checkout, env=environment, check=False).returncode

    try:
        status, figures = _test(run, checkout, arguments, {})
    finally:
        run([_SCRIPTS / "down.sh"], {})
    _write(checkout, figures)
    return status


def _on_our_engine(checkout: Path, arguments: Sequence[str]) -> int:
    print("kind: no Docker answers here; on an engine and a node image of our own", flush=True)
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
            SHELL_IMAGE: program_images.SHELL_IMAGE,
        }
        run = _run_inside(running, checkout)
        status, figures = _test(run, checkout, arguments, given)
        closing = time.monotonic()
    left = before.differences(machine_state())
    figures["kind_removed_s"] = round(time.monotonic() - closing, 1)
    figures["kind_s"] = round(time.monotonic() - began, 1)
    figures["kind_left_behind"] = len(left)
    print("\n".join([*left, f"kind: left behind: {len(left)}"]))
    _write(checkout, figures)
    return status or bool(left)


def _run_inside(running: Engine, checkout: Path) -> RunCommand:
    search_path = _search_path(running.environment["PATH"])

    def run(command: Sequence[str | Path], more: Mapping[str, str]) -> int:
        return running.run(command, checkout, {"PATH": search_path, **more})

    return run


def _search_path(known: str) -> str:
    """Return where programs are found: the machine's own kind, kubectl and helm, else ours."""
    places = [known]
    if shutil.which("kind", path=known) is None:
        places.append(str(built(KIND)))
    if any(shutil.which(name, path=known) is None for name in ("kubectl", "helm")):
        places.append(str(control_plane_programs()))
    return os.pathsep.join(places)


def _test(
    run: RunCommand, checkout: Path, arguments: Sequence[str], given: Mapping[str, str]
) -> tuple[int, dict[str, Any]]:
    """Make the cluster, run the tests and return pytest's status and what is counted."""
    results = checkout / _RESULTS / "kind.xml"
    results.unlink(missing_ok=True)
    began = time.monotonic()
    status = run([_SCRIPTS / "up.sh"], given)
    figures: dict[str, Any] = {"kind_up_s": round(time.monotonic() - began, 1)}
    if status == 0:
        extender, operator = (checkout / _KEPT / "images").read_text().split()
        told = {
            **given,
            KUBECONFIG: str(checkout / _KEPT / "kubeconfig"),
            EXTENDER_IMAGE: extender,
            OPERATOR_IMAGE: operator,
        }
        _uninstall(run, told)
        command = [sys.executable, "-m", "pytest", "-m", "e2e", "-rs", "--durations=10"]
        ignored = [f"--ignore={each}" for each in _OTHERS]
        options = [f"--junitxml={results}", *ignored, *arguments]
        status = run([*command, *options, "tests/e2e"], told)
    return status, {**figures, **read_results(results).figures("kind_e2e")}


def _uninstall(run: RunCommand, told: Mapping[str, str]) -> None:
    """Remove the release of `up.sh` and what it made, its certificate too: tests install anew."""
    kubeconfig = {"KUBECONFIG": told[KUBECONFIG]}
    space = f"--namespace={NAMESPACE}"
    run(["helm", "uninstall", NAME, space, "--wait"], kubeconfig)
    run(["kubectl", "delete", "namespace", NAMESPACE, "--timeout=120s"], kubeconfig)


def _write(checkout: Path, figures: Mapping[str, Any]) -> None:
    text = json.dumps(figures, indent=2)
    (checkout / _RESULTS / "kind.json").write_text(f"{text}\n")
    print(text)
