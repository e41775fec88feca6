"""kind without Docker and registries, as far as it shows without root: files that others read."""

import gzip
import hashlib
import io
import json
import re
import tarfile
from pathlib import Path

import pytest
import yaml

from greensched_testbed.errors import BuildFailed
from greensched_testbed.kind import node_image
from greensched_testbed.kind.layers import LayerEntry, compressed_layer, write_image, write_layer
from greensched_testbed.kind.runc_without_resource import reduce_files, reduced

OF_THE_TESTBED = re.compile(r"^from greensched_testbed\.(?:\w+\.)*(\w+) import", re.M)
PROCESS = {
    "args": ["/sbin/init"],
    "rlimits": [{"type": "RLIMIT_NOFILE", "hard": 1024, "soft": 1024}],
    "oomScoreAdj": -999,
    "capabilities": {"bounding": ["CAP_KILL", "CAP_SYS_RESOURCE"], "ambient": []},
}
REDUCED = {
    "args": ["/sbin/init"],
    "capabilities": {"bounding": ["CAP_KILL"], "ambient": []},
}


def test_an_image_names_its_layers_by_what_they_are_unpacked(tmp_path: Path) -> None:
    entries = (
        LayerEntry("bin"),
        LayerEntry("bin/sh", b"#!", 0o755),
        LayerEntry("sh", target="/bin/sh"),
    )
    plain = write_layer(entries, tmp_path / "one.tar")
    write_image(
        tmp_path / "image.tar", ["localhost/one:1"], {"User": "0"}, [compressed_layer(plain)]
    )
    with tarfile.open(tmp_path / "image.tar") as image:
        files = {member.name: image.extractfile(member) for member in image}
        held = {name: file.read() for name, file in files.items() if file is not None}
    (manifest,) = json.loads(held["manifest.json"])
    assert manifest["RepoTags"] == ["localhost/one:1"]
    assert hashlib.sha256(held[manifest["Config"]]).hexdigest() == Path(manifest["Config"]).stem
    layer = gzip.decompress(held[manifest["Layers"][0]])
    config = json.loads(held[manifest["Config"]])
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}"]
    with tarfile.open(fileobj=io.BytesIO(layer)) as unpacked:
        assert unpacked.getmember("bin/sh").mode == 0o755
        assert unpacked.getmember("bin").isdir()
        assert unpacked.getmember("sh").linkname == "/bin/sh"


def test_runc_is_not_asked_for_what_needs_the_capability() -> None:
    assert reduced(PROCESS) == REDUCED


def test_a_raised_oom_score_stays() -> None:
    assert reduced({"args": [], "oomScoreAdj": 500}) == {"args": [], "oomScoreAdj": 500}


def test_both_a_containers_and_a_processs_file_are_reduced(tmp_path: Path) -> None:
    bundle, process = tmp_path / "config.json", tmp_path / "process.json"
    bundle.write_text(json.dumps({"root": {}, "process": PROCESS}))
    process.write_text(json.dumps(PROCESS))
    reduce_files(["--log", "x", "create", "--bundle", str(tmp_path), "one"])
    reduce_files(["exec", "--process", str(process), "one"])
    assert json.loads(bundle.read_text()) == {"root": {}, "process": REDUCED}
    assert json.loads(process.read_text()) == REDUCED


@pytest.mark.parametrize("name", ["pod-network.yaml", "storage.yaml"])
def test_what_kind_applies_is_yaml_that_it_takes_for_no_template_of_its_own(name: str) -> None:
    text = (Path(node_image.__file__).parent / name).read_text()
    assert "would you kindly" not in text
    assert all(each["kind"] for each in yaml.safe_load_all(text))


def test_the_node_image_is_made_anew_when_what_writes_a_part_of_it_changes() -> None:
    """Its images of pods were once those of an older checkout."""
    folder = Path(node_image.__file__).parent
    written_by = {Path(name).stem for name in node_image._MADE_BY if name.endswith(".py")}
    by_a_key_of_its_own = {"binaries", "debian_base", "program_images"}
    writes_nothing = {"errors", "progress"}
    for name in node_image._MADE_BY:
        imported = set(OF_THE_TESTBED.findall((folder / name).read_text()))
        assert imported <= written_by | by_a_key_of_its_own | writes_nothing, name


def test_the_node_image_is_made_anew_for_another_busybox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    busybox = tmp_path / "busybox"
    busybox.write_bytes(b"\x7fELF")
    busybox.chmod(0o755)
    name = node_image.node_image_name()
    assert node_image.node_image_name() == name
    busybox.write_bytes(b"\x7fELF, newer")
    assert node_image.node_image_name() != name


def test_without_busybox_the_node_image_has_no_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BuildFailed, match="busybox is missing"):
        node_image.node_image_name()
