"""Namespaces of Linux that a process holds open, and how to start programs inside."""

from dataclasses import dataclass
from pathlib import Path

from greensched_testbed.commands import run_command
from greensched_testbed.processes import ManagedProcess, Processes

_PATIENCE_S = 10.0


@dataclass(frozen=True)
class Namespaces:
    """Mounts, network and host name of one machine of ours, while its holder runs."""

    holder: ManagedProcess

    def prefix(self) -> tuple[str, ...]:
        """Return what a command is started through to run inside; its folder is then `/`."""
        return ("nsenter", "--target", str(self.holder.pid), "--mount", "--net", "--uts", "--")

    def run(self, script: str) -> None:
        """Run a shell script inside, to its end; raise CommandFailed when a line of it fails."""
        run_command(*self.prefix(), "/bin/sh", "-euc", script)


def hold_namespaces(processes: Processes, name: str) -> Namespaces:
    """Start a process that does nothing but hold new namespaces; they go when all in them end."""
    holder = processes.start(
        name,
        ["unshare", "--mount", "--net", "--uts", "--propagation", "private", "sleep", "infinity"],
    )
    # unshare has become it: all namespaces are there.
    holder.wait_until(lambda: _command_name(holder.pid) == "sleep", "namespaces", _PATIENCE_S)
    return Namespaces(holder)


def _command_name(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()
