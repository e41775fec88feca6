import io
import json
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from greensched_testbed.real_nodes.program_images import ProgramImage, archive, identity

NAMES = ("localhost/one:1", "registry.k8s.io/pause:3.10")


@pytest.fixture
def image(tmp_path: Path) -> ProgramImage:
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF")
    return ProgramImage(NAMES, program, "bin/program", links=("bin/sh",), command=("/bin/sh",))


def test_an_archive_holds_one_image_under_all_its_names(
    image: ProgramImage, tmp_path: Path
) -> None:
    with tarfile.open(archive(image, tmp_path / "kept")) as tar:
        (manifest,) = json.load(tar.extractfile("manifest.json") or io.BytesIO())
        config = json.load(tar.extractfile(manifest["Config"]) or io.BytesIO())
        with tarfile.open(fileobj=tar.extractfile(manifest["Layers"][0])) as layer:
            assert layer.getmember("bin/program").mode == 0o755
            assert layer.getmember("bin/sh").linkname == "/bin/program"
            assert layer.getmember("tmp").mode == 0o1777, "anybody may write there"
    assert manifest["RepoTags"] == list(NAMES)
    assert config["config"]["Cmd"] == ["/bin/sh"]


def test_an_archive_holds_the_libraries_at_their_own_paths(
    image: ProgramImage, tmp_path: Path
) -> None:
    library = tmp_path / "lib" / "libc.so.6"
    library.parent.mkdir()
    library.write_bytes(b"\x7fELF, shared")
    linked = replace(image, libraries=(library,), entrypoint=("/bin/program",))
    with tarfile.open(archive(linked, tmp_path / "kept")) as tar:
        (manifest,) = json.load(tar.extractfile("manifest.json") or io.BytesIO())
        config = json.load(tar.extractfile(manifest["Config"]) or io.BytesIO())
        with tarfile.open(fileobj=tar.extractfile(manifest["Layers"][0])) as layer:
            found = layer.extractfile(str(library).lstrip("/"))
            assert found is not None and found.read() == library.read_bytes()
    assert config["config"]["Entrypoint"] == ["/bin/program"]


def test_an_archive_is_written_once_and_again_when_the_program_changes(
    image: ProgramImage, tmp_path: Path
) -> None:
    first = archive(image, tmp_path / "kept")
    written_ns = first.stat().st_mtime_ns
    assert archive(image, tmp_path / "kept") == first
    assert first.stat().st_mtime_ns == written_ns
    content = first.read_bytes()
    first.unlink()
    assert archive(image, tmp_path / "kept").read_bytes() == content
    image.program.write_bytes(b"\x7fELF, newer")
    assert archive(image, tmp_path / "kept") != first


def test_an_image_is_another_when_a_part_of_it_is(image: ProgramImage, tmp_path: Path) -> None:
    images = (
        image,
        replace(image, names=("localhost/one:1", "registry.k8s.io/pause:3.11")),
        replace(image, links=("bin/ash",)),
        replace(image, command=("/bin/ash",)),
    )
    assert identity(image) == identity(replace(image))
    assert len({identity(each) for each in images}) == len(images)
    assert len({archive(each, tmp_path / "kept") for each in images}) == len(images)
