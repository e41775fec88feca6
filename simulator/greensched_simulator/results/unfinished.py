"""The folder into which a run writes until it is complete; only one run can hold it.

It is inside the run's folder: a user who may write to that folder may always write here.
"""

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from greensched_core.errors import BadInput

UNFINISHED = ".unfinished"
_ANOTHER = "name another folder with --out"


class Unfinished:
    """The folder of incomplete files; `settle` moves them, `leave` without that undoes all.

    Raises BadInput if the run's folder has files or cannot be created.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / UNFINISHED
        self.is_whole = False  # whether this run moved all files
        self._is_held = False
        self._is_new = False  # whether this run created the folder
        self._moved: list[Path] = []
        self._refuse_files()
        nearest = next(each for each in (folder, *folder.absolute().parents) if each.exists())
        if not nearest.is_dir() or not os.access(nearest, os.W_OK):
            raise BadInput(
                f"{folder} cannot be created: {nearest} is not a folder that you can write to; "
                f"{_ANOTHER}"
            )

    def begin(self) -> None:
        """Create the folder; raise BadInput if another run did, or if that fails."""
        self._is_new = not self.folder.exists()
        self._is_held = True  # before it is: an interruption may come as soon as it is there
        try:
            self.path.mkdir(parents=True)
        except OSError as fault:
            self._is_held = False
            self._refuse_files()
            raise BadInput(f"{self.folder} cannot be created: {fault}; {_ANOTHER}") from fault
        self._refuse_files(but=UNFINISHED)  # another run may have ended since the first check

    def settle(self, names: Sequence[str]) -> None:
        """Move all files to their places in this order; raise BadInput if one exists there."""
        taken = [name for name in names if os.path.lexists(self.folder / name)]
        if taken:
            raise BadInput(f"{self.folder} got {', '.join(taken)} from another program during "
                f"the run: {_ANOTHER}")  # fmt: skip
        for name in names:
            self._moved.append(self.folder / name)
            (self.path / name).replace(self._moved[-1])
        self.is_whole = True

    def leave(self) -> None:
        """Delete incomplete files, and the folder if this run created it; safe to repeat."""
        if not self._is_held:
            return
        shutil.rmtree(self.path, ignore_errors=True)  # the error that ended the run is reported
        if not self.is_whole:
            for path in self._moved:
                path.unlink(missing_ok=True)
            if self._is_new:
                with suppress(OSError):  # other programs may have put files there
                    self.folder.rmdir()
        self._is_held = False

    def _refuse_files(self, but: str = "") -> None:
        if not self.folder.is_dir():
            return
        found = {each.name for each in self.folder.iterdir()} - {but}
        if UNFINISHED in found:
            raise BadInput(
                f"{self.folder} is in use by another run, or left by a killed one: {_ANOTHER}; "
                f"or, if no run uses it, delete {self.path}"
            )
        if found:
            raise BadInput(f"{self.folder} exists and is not empty: {_ANOTHER}")
