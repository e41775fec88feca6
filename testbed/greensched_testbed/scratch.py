"""Creates scratch folders; the next start removes those that a killed process left."""

import os
import shutil
import tempfile
from pathlib import Path

import psutil

_PREFIX = "greensched-testbed-"
_OWNER = "owner"


def new_scratch_folder() -> Path:
    """Return a new scratch folder, after removing those whose owners were killed."""
    remove_abandoned(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    (folder / _OWNER).write_text(_identity(os.getpid()))
    return folder


def remove_abandoned(parent: Path) -> None:
    """Remove the scratch folders below `parent` whose owners no longer run."""
    for owner in parent.glob(f"{_PREFIX}*/{_OWNER}"):
        try:
            pid, started_at = owner.read_text().split()
            if _identity(int(pid)).split()[1] == started_at:
                continue
        except (OSError, ValueError):
            continue  # another user's, or still being written
        except psutil.NoSuchProcess:
            pass
        shutil.rmtree(owner.parent, ignore_errors=True)


def _identity(pid: int) -> str:
    return f"{pid} {psutil.Process(pid).create_time():.2f}"
