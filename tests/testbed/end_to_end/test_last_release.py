"""Where the last release is taken from."""

import subprocess
from pathlib import Path

import pytest

from greensched_testbed.end_to_end.last_release import TAG, unpack_last_release
from greensched_testbed.errors import CannotBuildHere


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgSign=false")
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository that went on after a first commit."""
    folder = tmp_path / "clone"
    folder.mkdir()
    git(folder, "init")
    for text in ("then", "now"):
        (folder / "code").write_text(text)
        git(folder, "add", "code")
        git(folder, "commit", "-m", text)
    return folder


def test_it_is_what_its_tag_names(clone: Path, tmp_path: Path) -> None:
    git(clone, "tag", TAG, "HEAD~1")
    unpack_last_release(clone, tmp_path / "sources")
    assert (tmp_path / "sources/code").read_text() == "then"


def test_a_clone_without_the_tag_and_the_commit_says_so(clone: Path, tmp_path: Path) -> None:
    with pytest.raises(CannotBuildHere, match=rf"neither {TAG} nor [0-9a-f]{{12}} here"):
        unpack_last_release(clone, tmp_path / "sources")


def test_sources_without_history_say_so(tmp_path: Path) -> None:
    with pytest.raises(CannotBuildHere, match="is not a clone"):
        unpack_last_release(tmp_path, tmp_path / "sources")
