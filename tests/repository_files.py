"""The files of the repository, for the tests of its rules."""

import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent


@cache
def files_of_the_repository() -> tuple[Path, ...]:
    """Return the tracked files and those about to be: what git neither ignores nor misses."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    paths = (ROOT / name for name in sorted(set(listing.stdout.split("\0"))) if name)
    return tuple(path for path in paths if path.is_file())
