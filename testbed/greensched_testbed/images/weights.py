"""What the parts of an image weigh."""

from collections import Counter
from pathlib import Path

DEPENDENCIES = "opt/greensched/dependencies"  # where the Dockerfile puts them


def weights_mb(root: Path) -> dict[str, float]:
    """Return each installed package's size in 10^6 bytes, the heaviest first.

    root: an image's file system. The libraries that a wheel brings (numpy.libs) count as its own.
    """
    sizes: Counter[str] = Counter()
    for part in (root / DEPENDENCIES).iterdir():
        name = part.name.removesuffix(".libs")
        files = part.rglob("*") if part.is_dir() else [part]
        sizes[name] += sum(each.lstat().st_size for each in files if each.is_file())
    return {name: size / 1e6 for name, size in sizes.most_common()}
