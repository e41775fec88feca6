import subprocess
import sys
from pathlib import Path

import pytest

from greensched_testbed.requirements import (
    ENGINE,
    IMAGES,
    NODES,
    CannotRunNodes,
    is_crowded,
    may_make_cgroups,
    missing,
    missing_rights,
    require_nodes,
)

ROOT = Path(__file__).parents[2]
DOCKER = 0x00000000A80425FB  # of root in a container of Docker's
ALL = 0x000001FFFFFFFFFF


@pytest.mark.parametrize(
    ("user_id", "capabilities", "has_cgroups", "lacks"),
    [
        pytest.param(0, ALL, True, [], id="root-of-the-machine"),
        pytest.param(1000, 0, False, ["root"], id="a-user"),
        pytest.param(0, DOCKER, False,
                     ["CAP_SYS_ADMIN", "CAP_NET_ADMIN",
                      "cgroups that can be written at /sys/fs/cgroup"], id="a-container"),
        pytest.param(0, DOCKER | 1 << 12, True, ["CAP_SYS_ADMIN"], id="a-container-that-routes"),
        pytest.param(0, ALL & ~(1 << 12), True, ["CAP_NET_ADMIN"], id="no-networks"),
    ],
)  # fmt: skip
def test_rights_that_root_lacks_are_named(
    user_id: int, capabilities: int, has_cgroups: bool, lacks: list[str]
) -> None:
    assert missing_rights(user_id, capabilities, has_cgroups) == lacks


@pytest.mark.parametrize(
    ("mounts", "may"),
    [
        pytest.param("cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n", True, id="version-2"),
        pytest.param("cgroup /sys/fs/cgroup cgroup2 ro,nosuid 0 0\n", False, id="of-a-container"),
        pytest.param("tmpfs /sys/fs/cgroup tmpfs ro 0 0\n"
                     "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n", True, id="version-1"),
        pytest.param("cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n"
                     "cgroup /sys/fs/cgroup/memory cgroup ro,memory 0 0\n", False, id="one-of-two"),
        pytest.param("proc /proc proc rw 0 0\n", False, id="none"),
    ],
)  # fmt: skip
def test_cgroups_that_are_mounted_read_only_do_not_count(mounts: str, may: bool) -> None:
    assert may_make_cgroups(mounts) is may


@pytest.mark.parametrize(
    ("is_machines", "passed_on", "processes", "refuses"),
    [
        pytest.param(True, "", "1\n2\n", False, id="the-machines-own"),
        pytest.param(False, "", "1\n2\n", True, id="a-containers-with-processes"),
        pytest.param(False, "", "", False, id="a-containers-without"),
        pytest.param(False, "cpu memory", "1\n", False, id="all-are-passed-on-already"),
    ],
)
def test_a_containers_root_of_cgroups_with_processes_passes_no_controllers_on(
    tmp_path: Path, is_machines: bool, passed_on: str, processes: str, refuses: bool
) -> None:
    files = {"controllers": "cpu memory\n", "subtree_control": passed_on, "procs": processes}
    for name, text in (files if is_machines else {**files, "type": "domain\n"}).items():
        (tmp_path / f"cgroup.{name}").write_text(text)
    assert is_crowded(tmp_path) is refuses


def test_a_crowded_root_of_cgroups_is_named() -> None:
    (told,) = missing_rights(0, ALL, True, is_crowded=True)
    assert told.startswith("a root of cgroups at /sys/fs/cgroup that is the machine's or has no")


def test_a_process_without_capabilities_has_none() -> None:
    if missing(NODES):
        pytest.skip("; ".join(missing(NODES)))
    script = "from greensched_testbed import requirements; print(requirements.missing())"
    command = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", sys.executable, "-c", script]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "CAP_SYS_ADMIN" in told and "CAP_NET_ADMIN" in told


def test_e2e_setup_installs_all_that_is_asked_for_and_debians_keys(tmp_path: Path) -> None:
    script = "print:\n\t@echo $(E2E_PACKAGES)\n"
    (tmp_path / "print.mk").write_text(script)
    command = ["make", "--silent", "-f", "Makefile", "-f", str(tmp_path / "print.mk"), "print"]
    environment = {"PATH": "/usr/bin:/bin"}
    told = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    asked_for = {*IMAGES.values(), *ENGINE.values()}
    there_already = {"containerd", "runc"}  # left out where Docker's packages brought them
    assert asked_for - there_already <= set(told.stdout.split())
    assert {"debian-archive-keyring", "gpg"} <= set(told.stdout.split())


def test_what_is_missing_is_named_by_its_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (lacks,) = [each for each in missing(NODES) if "packages" in each]
    assert "busybox-static conntrack containerd iproute2 nftables runc util-linux" in lacks
    with pytest.raises(CannotRunNodes, match="make e2e-setup"):
        require_nodes()


def test_a_package_that_is_there_is_not_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for program in ("containerd", "ctr"):
        (tmp_path / program).write_text("#!/bin/sh\n")
        (tmp_path / program).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not any("containerd" in each for each in missing(NODES))
