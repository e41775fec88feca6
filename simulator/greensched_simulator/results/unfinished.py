"""Where a run writes until all is whole: a folder within its own, which one run alone can hold.

Within the run's folder, not beside it: who may write to that may write here, wherever it lies.
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
    """The place of files that are not whole yet; `settle` moves them, `leave` before undoes all.

    Raises BadInput when the folder holds files already, or cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / UNFINISHED
        self.is_whole = False  # whether all files were moved, by this run
        self._is_held = False
        self._is_new = False  # whether the folder was made here
        self._moved: list[Path] = []
        self._refuse_files()
        nearest = next(each for each in (folder, *folder.absolute().parents) if each.exists())
        if not nearest.is_dir() or not os.access(nearest, os.W_OK):
            raise BadInput(
                f"{folder} cannot be created: {nearest} is not a folder that you can write to; "
                f"{_ANOTHER}"
            )

    def begin(self) -> None:
        """Make the folder; raise BadInput when another run was quicker, or it cannot be made."""
        is_new = not self.folder.exists()
        try:
            self.path.mkdir(parents=True)
        except OSError as fault:
            self._refuse_files()
            raise BadInput(f"{self.folder} cannot be created: {fault}; {_ANOTHER}") from fault
        self._is_held, self._is_new = True, is_new
        self._refuse_files(but=UNFINISHED)  # since it was asked a run may have come and ended

    def settle(self, names: Sequence[str]) -> None:
        """Move all files to their place in this order; raise BadInput where one is taken."""
        taken = [name for name in names if os.path.lexists(self.folder / name)]
        if taken:
            raise BadInput(f"{self.folder} got {', '.join(taken)} from another program during "
                f"the run: {_ANOTHER}")  # fmt: skip
        for name in names:
            self._moved.append(self.folder / name)
            (self.path / name).replace(self._moved[-1])
        self.is_whole = True

    def leave(self) -> None:
        """Delete what is not whole, and the folder itself if it was made here; safe to repeat."""
        if not self._is_held:
            return
        shutil.rmtree(self.path, ignore_errors=True)  # what ended the run is reported, not this
        if not self.is_whole:
            for path in self._moved:
                path.unlink(missing_ok=True)
            if self._is_new:
                with suppress(OSError):  # others may have put something there
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
