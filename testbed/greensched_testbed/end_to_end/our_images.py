"""Builds our images as archives, without Docker, and prints how to use them: `make images`."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from greensched_core.errors import GreenSchedError
from greensched_testbed.end_to_end.real_cluster import image_archives
from greensched_testbed.requirements import IMAGES, missing


def main() -> None:
    """Build the images on first use, and print where they are."""
    if gaps := missing(IMAGES):
        sys.exit(f"images: building them without Docker needs {'; '.join(gaps)}")
    try:
        print("\n".join(how_to_use(image_archives(Path.cwd()))))
    except GreenSchedError as fault:
        sys.exit(f"images: {fault}")


def how_to_use(archives: Mapping[str, Path]) -> Iterator[str]:
    """Yield lines on how to use archives, given by image name: extender, then operator."""
    yield "The images are built. Load them into Docker with"
    for archive in archives.values():
        yield f"docker load -i {archive}"
    yield ""
    yield "Or, for real nodes of this machine:"
    given = " ".join(f"--image {archive}" for archive in archives.values())
    yield f".venv/bin/greensched cluster up --real-nodes 2 {given}"
    yield ""
    yield "Helm takes them, where the nodes have them, with"
    for part, name in zip(("extender", "operator"), archives, strict=True):
        repository, _, tag = name.rpartition(":")
        yield f"--set {part}.image.repository={repository} --set-string {part}.image.tag={tag}"


if __name__ == "__main__":
    main()
