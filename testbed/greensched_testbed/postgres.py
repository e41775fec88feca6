"""A throw-away PostgreSQL server of Debian's package, for tests of what is kept in one.

PostgreSQL refuses to run as root: there it runs as the package's user, or as nobody.
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
_STARTS = 20  # a server that crashed may leave its shared memory in use for a moment
# What is kept here need not outlive the machine, only the server: nothing waits for the disk.
_FAST = ("fsync=off", "full_page_writes=off", "shared_buffers=16MB")


def postgres_programs() -> Path:
    """Return the folder of PostgreSQL's programs, the newest; raise BadInput where there is none.

    Looked for on the PATH, and where Debian and Ubuntu put them.
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
    """A server on a free port of 127.0.0.1, empty at first, that goes with its folder at the end.

    A context manager; raises BadInput where PostgreSQL is not installed.
    """

    def __init__(self) -> None:
        self._programs = postgres_programs()
        self._port = free_port()
        self.folder = new_scratch_folder()
        self._process: ManagedProcess | None = None

    @property
    def url(self) -> str:
        """Return the DSN of its superuser, who needs no password."""
        return f"postgresql://ledger@127.0.0.1:{self._port}/postgres"

    def __enter__(self) -> Self:
        self.folder.chmod(0o711)  # so that the server's user gets to its own folder
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
        """Start it, and return when it answers; raise ProcessDied or NotReady."""
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
        """End it at once, as a crash would, its connections too; `start` recovers what it held."""
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
        asked: list[str | Path] = [
            self._programs / "pg_isready",
            "-q",
            "-h",
            "127.0.0.1",
            "-p",
            str(self._port),
        ]
        return subprocess.run(asked, check=False).returncode == 0

    def _run(self, command: Sequence[str | Path]) -> None:
        whole: list[str | Path] = [*_as_user(), *command]
        done = subprocess.run(whole, cwd="/", capture_output=True, text=True, check=False)
        if done.returncode:
            raise CommandFailed(Path(command[0]).name, done.returncode, done.stderr)


def _user() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise BadInput("PostgreSQL does not run as root, and there is neither postgres nor nobody")


def _as_user() -> list[str]:
    """Return what goes before a command so that it runs as somebody else, where we are root.

    A change of user forgets that the kernel should end a child with its parent: it is asked again.
    """
    if os.geteuid() != 0:
        return []
    user = _user()
    return [
        "setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups",
        "--pdeathsig=KILL", "--",
    ]  # fmt: skip
