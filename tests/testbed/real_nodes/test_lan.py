import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from greensched_testbed.commands import run_command
from greensched_testbed.errors import CommandFailed
from greensched_testbed.real_nodes.lan import plugged_in, unplug
from greensched_testbed.requirements import NODES, missing

RUN = "greensched-test-of-the-lan"


@pytest.fixture
def interface() -> Iterator[str]:
    """An interface of this machine that carries a run's name, as a run's does."""
    if missing(NODES):
        pytest.skip(f"interfaces need {'; '.join(missing(NODES))}")
    name = f"gs{os.getpid()}"
    run_command(*f"ip link add name {name} type veth peer name {name}p".split())
    run_command("ip", "link", "set", name, "alias", RUN)
    yield name
    if RUN in plugged_in():
        run_command("ip", "link", "delete", name)


def replace_ip(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a script run instead of `ip`, which it finds as $ip."""
    (folder / "ip").write_text(f"#!/bin/sh\nip={shutil.which('ip')}\n{script}\n")
    (folder / "ip").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def test_an_interface_that_goes_with_its_namespace_meanwhile_is_gone(
    interface: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_ip(tmp_path, '[ "$2" = delete ] && $ip "$@"; exec $ip "$@"', monkeypatch)
    unplug(RUN)
    assert RUN not in plugged_in()


def test_an_interface_that_stays_is_reported(
    interface: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_ip(tmp_path, '[ "$2" = delete ] && exit 1; exec $ip "$@"', monkeypatch)
    with pytest.raises(CommandFailed):
        unplug(RUN)
