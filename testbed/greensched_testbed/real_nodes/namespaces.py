"""Namespaces of Linux that a process holds open, and how to start programs inside."""

import os
from dataclasses import dataclass
from io import RawIOBase
from pathlib import Path

from greensched_testbed.commands import run_command
from greensched_testbed.processes import ManagedProcess, Processes

_PATIENCE_S = 10.0
# It ends with whoever holds the other end of its input, until that one says that it may stay.
_HOLDS = "read -r said && exec sleep infinity"


@dataclass(frozen=True)
class Namespaces:
    """Mounts, network and host name of one machine of ours, while its holder runs.

    However we end, the holder ends with us, until `let_go`: no other process knows of it yet.
    """

    holder: ManagedProcess
    lifeline: RawIOBase  # the other end of its input

    def prefix(self) -> tuple[str, ...]:
        """Return what a command is started through to run inside; its folder is then `/`."""
        return ("nsenter", "--target", str(self.holder.pid), "--mount", "--net", "--uts", "--")

    def run(self, script: str) -> None:
        """Run a shell script inside, to its end; raise CommandFailed when a line of it fails."""
        run_command(*self.prefix(), "/bin/sh", "-euc", script)

    def let_go(self) -> None:
        """Have the holder outlive us."""
        self.lifeline.write(b"stay\n")
        self.lifeline.close()

    def close(self) -> None:
        """Let the holder end, unless it was let go; safe to repeat."""
        self.lifeline.close()


def hold_namespaces(processes: Processes, name: str) -> Namespaces:
    """Start a process that does nothing but hold new namespaces; they go when all in them end."""
    unshare = ("unshare", "--mount", "--net", "--uts", "--propagation", "private")
    reading, writing = os.pipe()
    lifeline = open(writing, "wb", buffering=0)
    try:
        holder = processes.start(name, [*unshare, "sh", "-c", _HOLDS], stdin=reading)
        # unshare has become it: all namespaces are there.
        holder.wait_until(lambda: _command_name(holder.pid) == "sh", "namespaces", _PATIENCE_S)
    except BaseException:
        lifeline.close()
        raise
    finally:
        os.close(reading)
    return Namespaces(holder, lifeline)


def _command_name(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()
