"""Docker's engine and client out of Debian's packages, with an apt that is played."""

from pathlib import Path

import pytest

from greensched_testbed.errors import BuildFailed
from greensched_testbed.kind.docker_packages import docker_folders

APT_CACHE = 'if [ -n "$CLIENT_PACKAGE" ]; then echo "docker-cli - the client"; fi'
APT_GET = 'shift 2; for name in "$@"; do echo "$name" >>"$FETCHED"; : >"$name.deb"; done'
DPKG_DEB = """mkdir -p usr/bin usr/sbin
case "$2" in
docker.io.deb) : >usr/sbin/dockerd; [ -n "$CLIENT_PACKAGE" ] || : >usr/bin/docker ;;
docker-cli.deb) [ "$CLIENT_PACKAGE" = empty ] || : >usr/bin/docker ;;
esac"""


@pytest.fixture
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The names of the packages that were fetched."""
    for name, does in (("apt-cache", APT_CACHE), ("apt-get", APT_GET), ("dpkg-deb", DPKG_DEB)):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\n{does}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))  # of which macOS makes it
    monkeypatch.setenv("FETCHED", str(tmp_path / "fetched"))
    return tmp_path / "fetched"


@pytest.mark.parametrize(
    ("client_package", "packages"),
    [
        pytest.param("", ["docker.io", "tini"], id="debian-12"),
        pytest.param("full", ["docker.io", "tini", "docker-cli"], id="debian-13"),
    ],
)
def test_the_client_comes_along_and_all_is_fetched_once(
    fetched: Path, monkeypatch: pytest.MonkeyPatch, client_package: str, packages: list[str]
) -> None:
    monkeypatch.setenv("CLIENT_PACKAGE", client_package)
    assert docker_folders() == docker_folders()
    assert (docker_folders()[0] / "docker").is_file()
    assert fetched.read_text().split() == packages


def test_what_was_kept_without_a_client_is_fetched_anew(
    fetched: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLIENT_PACKAGE", "")
    client = docker_folders()[0] / "docker"
    client.unlink()
    assert docker_folders()[0] / "docker" == client
    assert client.is_file()


def test_packages_without_a_client_are_refused(
    fetched: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLIENT_PACKAGE", "empty")
    with pytest.raises(BuildFailed, match="no usr/bin/docker in the packages docker.io tini"):
        docker_folders()
