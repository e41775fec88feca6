"""Holds Linux namespaces open by a process, and starts programs in them."""

import os
from dataclasses import dataclass
from io import RawIOBase
from pathlib import Path

from greensched_testbed.commands import run_command
from greensched_testbed.processes import ManagedProcess, Processes

_PATIENCE_S = 10.0
# It ends when its input is closed, unless it has read a line that lets it stay.
_HOLDS = "read -r line && exec sleep infinity"


@dataclass(frozen=True)
class Namespaces:
    """The mount, network and host name namespaces of one machine, while their holder runs.

    Until `let_go` the holder ends with us, however we end: no other process knows of it yet.
    """

    holder: ManagedProcess
    lifeline: RawIOBase  # the other end of the holder's input

    def prefix(self) -> tuple[str, ...]:
        """Return the prefix that runs a command inside, with the working directory `/`."""
        return ("nsenter", "--target", str(self.holder.pid), "--mount", "--net", "--uts", "--")

    def run(self, script: str) -> None:
        """Run a shell script inside, to its end; raise CommandFailed if a line fails."""
        run_command(*self.prefix(), "/bin/sh", "-euc", script)

    def let_go(self) -> None:
        """Let the holder outlive us."""
        self.lifeline.write(b"stay\n")
        self.lifeline.close()

    def close(self) -> None:
        """End the holder, unless it was let go; safe to repeat."""
        self.lifeline.close()


def hold_namespaces(processes: Processes, name: str) -> Namespaces:
    """Start a process that only holds new namespaces, which end with the last process in them."""
    unshare = ("unshare", "--mount", "--net", "--uts", "--propagation", "private")
    reading, writing = os.pipe()
    lifeline = open(writing, "wb", buffering=0)
    try:
        holder = processes.start(name, [*unshare, "sh", "-c", _HOLDS], stdin=reading)
        # Once unshare has become sh, all namespaces exist.
        holder.wait_until(lambda: _command_name(holder.pid) == "sh", "namespaces", _PATIENCE_S)
    except BaseException:
        lifeline.close()
        raise
    finally:
        os.close(reading)
    return Namespaces(holder, lifeline)


def _command_name(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()
