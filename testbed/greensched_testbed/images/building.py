"""Builds our images from the Dockerfile by buildah, on a base of Debian's packages.

A machine without an image registry cannot pull the Dockerfile's base. mmdebstrap builds one from
Debian's packages instead, with another Python (3.11). All else is the Dockerfile's.
"""

import fcntl
import hashlib
import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from greensched_testbed.commands import run_builder
from greensched_testbed.images.debian import (
    LEFT_OUT,
    PYTHON_PACKAGES,
    PYTHON_SUITE,
    build_options,
    write_python_base,
)

COMPONENTS = ("extender", "operator")

_KEPT_S = 86_400.0  # another checkout on this machine may use an older image


@dataclass(frozen=True, slots=True)
class Image:
    """An image of a store, and its run configuration."""

    name: str
    layer_bytes: tuple[int, ...]  # unpacked; the base's layers come first
    environment: tuple[str, ...]  # NAME=value
    entrypoint: tuple[str, ...]
    folder: str  # working directory
    user: str  # uid:gid

    def own_megabytes(self, base: "Image") -> float:
        """Return the size that it adds to its base, in 10^6 bytes."""
        return sum(self.layer_bytes[len(base.layer_bytes) :]) / 1e6


def default_store() -> Path:
    """Return the folder of images and their build inputs."""
    return platformdirs.user_cache_path("greensched", appauthor=False) / "images"


class ImageStore:
    """The images of one checkout, kept in a folder between runs."""

    def __init__(self, checkout: Path, folder: Path | None = None) -> None:
        self._checkout = checkout
        self._folder = folder or default_store()
        self._folder.mkdir(parents=True, exist_ok=True)

    def base(self) -> Image:
        """Return the base of our images; build it on first use. Raises BuildFailed."""
        recipe = f"{PYTHON_SUITE} {PYTHON_PACKAGES} {LEFT_OUT}"
        name = f"localhost/python:{_short_hash(recipe.encode())}"
        with self._sole_builder():
            if name not in self._names():
                self._make_base(name)
            return self._image(name)

    def built(self, component: str) -> Image:
        """Return a component's image of the checkout's current state; raises BuildFailed.

        Its tag is the hash of the files copied into it, so that unchanged sources build nothing.
        """
        base = self.base()
        name = f"localhost/greensched-{component}:{self.tag(component)}"
        with self._sole_builder():
            if name not in self._names():
                self._build(component, name, base.name)
            return self._image(name)

    def tag(self, component: str) -> str:
        """Return the hash of a component's build inputs."""
        digest = hashlib.sha256((self._checkout / "Dockerfile").read_bytes())
        lines = (self._checkout / ".dockerignore").read_text().splitlines()
        other_components = [each for each in COMPONENTS if each != component]
        for line in sorted(lines):
            if line.startswith("!") and not any(other in line for other in other_components):
                for path in _files(self._checkout / line[1:]):
                    digest.update(f"{path.relative_to(self._checkout)}\0".encode())
                    digest.update(path.read_bytes())
        return digest.hexdigest()[:12]

    @contextmanager
    def root_of(self, image: Image) -> Iterator[Path]:
        """Mount an image's file system while the context is open; writes to it are discarded."""
        container = self._run("from", "--pull-never", image.name).strip()
        try:
            yield Path(self._run("mount", container).strip())
        finally:
            self._run("rm", container)

    def save(self, image: Image, archive: Path) -> None:
        """Write an image as an archive for `docker load` and `ctr images import`."""
        archive.unlink(missing_ok=True)
        self._run("push", "--quiet", image.name, f"docker-archive:{archive}:{image.name}")

    def _make_base(self, name: str) -> None:
        folder = self._folder / "base"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        write_python_base(folder)
        self._run("bud", "--isolation=chroot", "--tag", name, str(folder))
        shutil.rmtree(folder)

    def _build(self, component: str, name: str, base: str) -> None:
        self._run(
            "bud", "--format=docker", "--layers", "--quiet", *build_options(base),
            "--target", component, "--tag", name, str(self._checkout),
        )  # fmt: skip
        for other, made_s in self._names().items():
            if other.split(":")[0] == name.split(":")[0] and time.time() - made_s > _KEPT_S:
                self._run("rmi", other)

    def _image(self, name: str) -> Image:
        raw = json.loads(self._run("inspect", "--type", "image", name))
        config = raw["OCIv1"]["config"]
        return Image(
            name,
            tuple(layer["size"] for layer in json.loads(raw["Manifest"])["layers"]),
            tuple(config.get("Env", ())),
            tuple(config.get("Entrypoint", ())),
            config.get("WorkingDir", "/"),
            config.get("User", ""),
        )

    def _names(self) -> dict[str, float]:
        """Return the images' creation times by name, in seconds since the epoch."""
        listed = json.loads(self._run("images", "--json")) or ()
        return {name: each["created"] for each in listed for name in each.get("names") or ()}

    def _run(self, *arguments: str) -> str:
        store = ["--root", str(self._folder / "root"), "--runroot", str(self._folder / "run")]
        return run_builder(["buildah", *store, *arguments])

    @contextmanager
    def _sole_builder(self) -> Iterator[None]:
        with (self._folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _files(path: Path) -> list[Path]:
    """Return a file, or a folder's files without Python bytecode."""
    if path.is_file():
        return [path]
    return sorted(
        each for each in path.rglob("*") if each.is_file() and "__pycache__" not in each.parts
    )


def _short_hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]
