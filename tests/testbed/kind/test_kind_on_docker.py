"""The end-to-end tests over kind on a user's Docker, with programs that only note their calls."""

from pathlib import Path

import pytest

from greensched_core.errors import BadInput
from greensched_testbed.kind.end_to_end import has_docker, run_tests

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


def test_what_up_sh_began_is_taken_down(checkout: Path) -> None:
    assert run_tests(checkout, ()) == 3
    assert scripts_called(checkout) == ["up.sh", "down.sh"]


def test_a_users_cluster_is_left_alone(checkout: Path) -> None:
    write_program(checkout / "bin/kind", "echo other; echo greensched")
    with pytest.raises(BadInput, match=r"exists already.*deploy/kind/down\.sh"):
        run_tests(checkout, ())
    assert scripts_called(checkout) == []
