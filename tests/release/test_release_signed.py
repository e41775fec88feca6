"""A release of two small images, by the real programs: signed, verified, changed, pushed."""

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from deploy.release.faults import ReleaseFault
from deploy.release.images import COMPONENTS, PLATFORMS, BuiltImage, read_archive
from deploy.release.making import Wanted, complete
from deploy.release.processors import require_processor
from deploy.release.pushing import push, verify_pushed
from deploy.release.signing import Signer, Verifier, make_key
from deploy.release.source import Source
from deploy.release.verifying import pins, verify
from deploy.release.versions import project_version
from greensched_testbed.binaries import RELEASE, default_cache
from greensched_testbed.ports import free_port
from greensched_testbed.processes import start_process

pytestmark = pytest.mark.helm

ROOT = Path(__file__).resolve().parents[2]
VERSION = project_version(ROOT)
SOURCE = Source("c0ffee" * 6 + "beef", 1_700_000_000, "https://git.example.com/greensched")
PROGRAMS = default_cache() / RELEASE.key()
INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


@pytest.fixture(scope="module", autouse=True)
def _programs() -> None:
    if not PROGRAMS.is_dir():
        pytest.skip("cosign, crane and syft are not built: `make release` builds them, once")
    if find_spec("ziglang") is None:
        pytest.skip("ziglang is not installed, for the wheel: `make release` installs it, once")


class Blobs(dict[str, bytes]):
    """The blobs of an OCI layout, by digest."""

    def put(self, content: bytes, kind: str) -> dict[str, Any]:
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        self[digest] = content
        return {"mediaType": kind, "digest": digest, "size": len(content)}

    def put_json(self, content: dict[str, Any], kind: str) -> dict[str, Any]:
        return self.put(json.dumps(content).encode(), kind)


OURS = "opt/greensched/dependencies"
MACHINES = {"amd64": 62, "arm64": 183}  # of ELF


def library(machine: int, folder: str = OURS) -> bytes:
    """Return a layer of one shared library for a processor, and a link to it."""
    header = b"\x7fELF" + bytes(14) + machine.to_bytes(2, "little")
    member, link = (tarfile.TarInfo(f"{folder}/{name}") for name in ("one.so", "one.so.1"))
    member.size, layer = len(header), io.BytesIO()
    link.type, link.linkname = tarfile.SYMTYPE, "one.so"
    with tarfile.open(fileobj=layer, mode="w") as tar:
        tar.addfile(member, io.BytesIO(header))
        tar.addfile(link)
    return layer.getvalue()


def small_image(
    component: str, archive: Path, machines: Mapping[str, int] = MACHINES, folder: str = OURS
) -> BuiltImage:
    """Write an image of one file for every platform, as `buildah manifest push` would."""
    blobs, manifests = Blobs(), []
    for platform in PLATFORMS:
        system, processor = platform.split("/")
        content = library(machines[processor], folder)
        layer = blobs.put(gzip.compress(content, mtime=0), LAYER)
        diff = f"sha256:{hashlib.sha256(content).hexdigest()}"
        told = {"os": system, "architecture": processor}
        rootfs = {"type": "layers", "diff_ids": [diff]}
        config = blobs.put_json({**told, "config": {"User": component}, "rootfs": rootfs}, CONFIG)
        manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer]}
        manifests.append({**blobs.put_json(manifest, MANIFEST), "platform": told})
    index = blobs.put_json({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests}, INDEX)
    named = {**index, "annotations": {"org.opencontainers.image.ref.name": VERSION}}
    files = {f"blobs/{digest.replace(':', '/')}": content for digest, content in blobs.items()}
    files["oci-layout"] = b'{"imageLayoutVersion": "1.0.0"}'
    files["index.json"] = json.dumps({"schemaVersion": 2, "manifests": [named]}).encode()
    with tarfile.open(archive, "w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return BuiltImage(component, archive, *read_archive(archive))


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A registry on this machine."""
    folder, port = tmp_path_factory.mktemp("registry"), free_port()
    command: list[str | Path] = [
        PROGRAMS / "crane",
        "registry",
        "serve",
        "--address",
        f"127.0.0.1:{port}",
    ]
    process = start_process("registry", command, folder / "log")
    yield f"127.0.0.1:{port}/greensched"
    process.kill()


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_key(tmp_path_factory.mktemp("key"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, registry: str, key: Path) -> Path:
    """The folder of a release."""
    folder = tmp_path_factory.mktemp("release")
    images = {
        name: small_image(name, folder / f"greensched-{name}-{VERSION}.oci.tar")
        for name in COMPONENTS
    }
    # As large as real ones, which cosign reads only in part; what follows a tar's end is not read.
    os.truncate(images["operator"].archive, 130 * 2**20)
    wanted = Wanted(VERSION, registry, PLATFORMS, "", is_rehearsal=True)
    complete(wanted, SOURCE, "2026-01-01T00:00:00Z", folder, images, Signer(key))
    return folder


@pytest.fixture
def verifier(key: Path) -> Verifier:
    return Verifier(key.with_suffix(".pub"))


def test_what_was_made_holds_together_and_is_signed(made: Path, verifier: Verifier) -> None:
    told = verify(made, VERSION, verifier)
    assert len(told) == 11
    assert f"the chart names the operator of {', '.join(PLATFORMS)}" in told[-3]
    assert told[-1] == "the operator for linux/arm64 adds 1 shared libraries, all for linux/arm64"


def test_an_image_with_another_processors_libraries_is_refused(tmp_path: Path) -> None:
    archive = tmp_path / "image.oci.tar"
    image = small_image("extender", archive, {"amd64": 62, "arm64": 62})
    assert require_processor(archive, "linux/amd64", image.platforms["linux/amd64"]) == 1
    with pytest.raises(ReleaseFault, match="linux/arm64 has shared libraries for amd64"):
        require_processor(archive, "linux/arm64", image.platforms["linux/arm64"])


def test_an_image_in_which_no_library_is_found_has_not_been_looked_at(tmp_path: Path) -> None:
    archive = tmp_path / "image.oci.tar"
    image = small_image("extender", archive, folder="opt/elsewhere")
    with pytest.raises(ReleaseFault, match="contains no shared library below opt/greensched/"):
        require_processor(archive, "linux/amd64", image.platforms["linux/amd64"])


@pytest.mark.parametrize("name", ["SHA256SUMS", f"greensched-{VERSION}.tgz"])
def test_one_flipped_bit_is_reported(
    made: Path, verifier: Verifier, tmp_path: Path, name: str
) -> None:
    copy = Path(shutil.copytree(made, tmp_path / "copy"))
    content = bytearray((copy / name).read_bytes())
    content[len(content) // 2] ^= 1
    (copy / name).write_bytes(content)
    with pytest.raises(ReleaseFault, match="invalid signature|was changed"):
        verify(copy, VERSION, verifier)


def test_the_signature_of_another_key_is_refused(made: Path, tmp_path: Path) -> None:
    other = make_key(tmp_path / "other").with_suffix(".pub")
    with pytest.raises(ReleaseFault, match="signature"):
        verify(made, VERSION, Verifier(other))


def test_the_list_of_the_wheels_contents_has_every_pinned_package(made: Path) -> None:
    (path,) = made.glob("*.whl.spdx.json")
    told = json.loads(path.read_text())
    assert told["spdxVersion"].startswith("SPDX-")
    listed = {(each["name"], each.get("versionInfo")) for each in told["packages"]}
    assert pins("all") - listed == set()
    assert ("greensched", VERSION) in listed


def test_images_and_chart_are_pushed_by_the_digests_that_the_chart_names(
    made: Path, registry: str, key: Path, verifier: Verifier
) -> None:
    if shutil.which("skopeo") is None:
        pytest.skip("skopeo is not installed: apt install skopeo")
    references = push(made, VERSION, registry, Signer(key))
    verify_pushed(references, verifier)
    values = tarfile.open(made / f"greensched-{VERSION}.tgz").extractfile("greensched/values.yaml")
    assert values is not None
    text = values.read().decode()
    for component, reference in zip(COMPONENTS, references, strict=False):
        repository, digest = reference.split("@")
        assert (f'repository: "{repository}"' in text, digest in text) == (True, True), component
    crane = (PROGRAMS / "crane", "digest", "--insecure", f"{registry}/charts/greensched:{VERSION}")
    shown = subprocess.run(crane, capture_output=True, text=True, check=True)
    assert references[-1].endswith(shown.stdout.strip())
