"""Runs a temporary PostgreSQL server from Debian's package, for tests of the ledger.

PostgreSQL refuses to run as root: if we are root, it runs as `postgres` or `nobody`.
"""

import os
import pwd
import shutil
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from greensched_core.errors import BadInput
from greensched_testbed.errors import CommandFailed, ProcessDied
from greensched_testbed.ports import free_port
from greensched_testbed.processes import ManagedProcess, start_process
from greensched_testbed.scratch import new_scratch_folder

_PACKAGED = Path("/usr/lib/postgresql")
_NEEDED = ("initdb", "postgres", "pg_isready")
_READY_S = 30.0
_STARTS = 20  # a crashed server's shared memory may stay in use for a moment
# The data must survive a crash of the server but not of the machine: no writes wait for the disk.
_FAST = ("fsync=off", "full_page_writes=off", "shared_buffers=16MB")


def postgres_programs() -> Path:
    """Return the folder of the newest PostgreSQL programs; raise BadInput if there is none.

    This searches the PATH, and the folders of Debian and Ubuntu.
    """
    found = shutil.which("initdb")
    packaged = sorted(_PACKAGED.glob("*/bin"), key=lambda each: float(each.parent.name))
    first = [Path(found).resolve().parent] if found else []
    for folder in (*first, *packaged[::-1]):
        if all((folder / name).exists() for name in _NEEDED):
            return folder
    raise BadInput(
        "no PostgreSQL server is installed; on Debian and Ubuntu: apt install postgresql"
    )


class PostgresServer:
    """Context manager: an empty server on a free port of 127.0.0.1; its folder is then removed.

    Raises BadInput if PostgreSQL is not installed.
    """

    def __init__(self) -> None:
        self._programs = postgres_programs()
        self._port = free_port()
        self.folder = new_scratch_folder()
        self._process: ManagedProcess | None = None

    @property
    def url(self) -> str:
        """Return the DSN of the superuser, who needs no password."""
        return f"postgresql://ledger@127.0.0.1:{self._port}/postgres"

    def __enter__(self) -> Self:
        self.folder.chmod(0o711)  # so that the server's user can reach its own folder
        self._data.mkdir(mode=0o700)
        if os.geteuid() == 0:
            os.chown(self._data, _user().pw_uid, _user().pw_gid)
        self._run(
            [self._programs / "initdb", "--pgdata", self._data, "--username=ledger",
             "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C"],
        )  # fmt: skip
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self) -> None:
        """Start the server and wait until it answers; raise ProcessDied or NotReady."""
        options = (f"--{each}" for each in (*_FAST, "listen_addresses=127.0.0.1"))
        command: list[str | Path] = [
            self._programs / "postgres", "-D", self._data, "-p", str(self._port),
            "-k", self._data, *options,
        ]  # fmt: skip
        for last in range(_STARTS):
            self._process = start_process(
                "postgres", [*_as_user(), *command], self.folder / "postgres.log"
            )
            try:
                self._process.wait_until(self._answers, "an answer", _READY_S)
            except ProcessDied:
                if last == _STARTS - 1:
                    raise
            else:
                return

    def kill(self) -> None:
        """End the server and its connections like a crash; `start` then recovers its data."""
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.kill(process.pid, signal.SIGQUIT)  # PostgreSQL's "immediate shutdown"
            process.popen.wait(10.0)
        process.kill()

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def _answers(self) -> bool:
        command: list[str | Path] = [
            self._programs / "pg_isready",
            "-q",
            "-h",
            "127.0.0.1",
            "-p",
            str(self._port),
        ]
        return subprocess.run(command, check=False).returncode == 0

    def _run(self, command: Sequence[str | Path]) -> None:
        whole: list[str | Path] = [*_as_user(), *command]
        done = subprocess.run(whole, cwd="/", capture_output=True, text=True, check=False)
        if done.returncode:
            raise CommandFailed(Path(command[0]).name, done.returncode, done.stderr)


def _user() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise BadInput("PostgreSQL does not run as root; create the user postgres or nobody")


def _as_user() -> list[str]:
    """Return the prefix that runs a command as another user, or nothing if we are not root.

    A change of user clears the parent-death signal, so the prefix sets it again.
    """
    if os.geteuid() != 0:
        return []
    user = _user()
    return [
        "setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups",
        "--pdeathsig=KILL", "--",
    ]  # fmt: skip
