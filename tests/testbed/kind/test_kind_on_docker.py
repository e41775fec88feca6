"""The end-to-end tests over kind on a user's Docker, with programs that only note their calls."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from greensched_core.errors import BadInput
from greensched_testbed.kind.end_to_end import has_docker, run_tests

ROOT = Path(__file__).parents[3]
SCRIPT = '#!/bin/sh\necho "${0##*/} $*" >>"$CALLS"\n'


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout whose `up.sh` makes no cluster, and where Docker answers."""
    for name in ("bin/docker", "bin/kind", "bin/kubectl", "bin/helm", "deploy/kind/down.sh"):
        write_program(tmp_path / name, "")
    write_program(tmp_path / "deploy/kind/up.sh", "exit 3")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    return tmp_path


def write_program(path: Path, does: str) -> None:
    """Write a program that notes how it is called, and does what a line of shell says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{SCRIPT}{does}\n")
    path.chmod(0o755)


def scripts_called(checkout: Path) -> list[str]:
    """Return the scripts of ours that were run."""
    called = (line.split()[0] for line in (checkout / "calls").read_text().splitlines())
    return [name for name in called if name.endswith(".sh")]


@pytest.mark.parametrize(
    ("does", "answers"),
    [
        pytest.param("", True, id="it-answers"),
        pytest.param("exit 1", False, id="no-engine-runs"),
        pytest.param("exec sleep 60", False, id="it-hangs"),
    ],
)
def test_docker_counts_where_it_answers(checkout: Path, does: str, answers: bool) -> None:
    write_program(checkout / "bin/docker", does)
    assert has_docker(timeout_s=4.0) is answers


@pytest.mark.parametrize(
    ("clusters", "image", "is_told"),
    [
        pytest.param("greensched", "localhost/node:1", True, id="nodes-of-another-image-stay"),
        pytest.param("greensched", "", False, id="no-image-is-named"),
        pytest.param("other", "localhost/node:1", False, id="the-cluster-is-made"),
    ],
)
def test_up_sh_tells_of_a_node_image_that_it_ignores(
    checkout: Path, clusters: str, image: str, is_told: bool
) -> None:
    write_program(checkout / "bin/kind", f"echo {clusters}")
    write_program(checkout / "bin/kubectl", "exit 1")  # what follows the cluster is not run
    shutil.copy(ROOT / "deploy/kind/up.sh", checkout / "deploy/kind")
    environment = {**os.environ, "GREENSCHED_NODE_IMAGE": image}
    script = checkout / "deploy/kind/up.sh"
    ended = subprocess.run([script], env=environment, capture_output=True, text=True, check=False)
    assert ("GREENSCHED_NODE_IMAGE is ignored" in ended.stdout) == is_told
    assert (f"--image {image}" in (checkout / "calls").read_text()) == (not is_told and image != "")


def test_what_up_sh_began_is_taken_down(checkout: Path) -> None:
    assert run_tests(checkout, ()) == 3
    assert scripts_called(checkout) == ["up.sh", "down.sh"]


DOCKER = """case "$1 $2" in
"ps --all") cat "$STATE/containers" ;;
"network ls") cat "$STATE/networks" ;;
"network rm") : >"$STATE/networks" ;;
esac"""

PASSES = """
import pytest

@pytest.mark.e2e
def test_one(): pass
"""


@pytest.mark.parametrize(
    ("networks_before", "containers_after", "networks_after", "left_behind"),
    [
        pytest.param("", "", "network kind", 0, id="the-network-of-kind-is-removed"),
        pytest.param("network kind", "", "network kind", 0, id="the-users-stays"),
        pytest.param("", "container greensched-worker", "", 1, id="a-node-is-told"),
    ],
)
def test_what_stays_in_docker_is_counted(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, networks_before: str, containers_after: str,
    networks_after: str, left_behind: int,
) -> None:  # fmt: skip
    monkeypatch.setenv("STATE", str(checkout))
    (checkout / "networks").write_text(networks_before)
    (checkout / "containers").write_text("")
    write_program(checkout / "bin/docker", DOCKER)
    down = (("containers", containers_after), ("networks", networks_after))
    does = "; ".join(f"printf '%s' '{line}' >$STATE/{name}" for name, line in down)
    write_program(checkout / "deploy/kind/down.sh", does)
    write_program(
        checkout / "deploy/kind/up.sh", "mkdir -p build/kind; echo a:1 b:1 >build/kind/images"
    )
    (checkout / "tests/e2e").mkdir(parents=True)
    (checkout / "tests/e2e/test_one.py").write_text(PASSES)
    assert run_tests(checkout, ("-n0",)) == left_behind
    figures = json.loads((checkout / "build/e2e/kind.json").read_text())
    assert figures["kind_left_behind"] == left_behind
    assert figures["kind_e2e_passed"] == 1
    assert ("docker network rm kind" in (checkout / "calls").read_text()) == (
        networks_after != networks_before
    )


def test_a_users_cluster_is_left_alone(checkout: Path) -> None:
    write_program(checkout / "bin/kind", "echo other; echo greensched")
    with pytest.raises(BadInput, match=r"exists already.*deploy/kind/down\.sh"):
        run_tests(checkout, ())
    assert scripts_called(checkout) == []
