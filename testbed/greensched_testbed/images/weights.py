"""Measures the sizes of an image's packages."""

from collections import Counter
from pathlib import Path

DEPENDENCIES = "opt/greensched/dependencies"  # where the Dockerfile installs them


def weights_mb(root: Path) -> dict[str, float]:
    """Return each installed package's size in 10^6 bytes, the largest first.

    root: an image's file system. Libraries of a wheel (numpy.libs) count as part of its package.
    """
    sizes: Counter[str] = Counter()
    for part in (root / DEPENDENCIES).iterdir():
        name = part.name.removesuffix(".libs")
        files = part.rglob("*") if part.is_dir() else [part]
        sizes[name] += sum(each.lstat().st_size for each in files if each.is_file())
    return {name: size / 1e6 for name, size in sizes.most_common()}
