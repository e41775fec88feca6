"""The testbed's errors, other than bad input.

GreenSchedError
├── BuildFailed      a program could not be built; the message names the log
│   └── CannotBuildHere   the machine or the clone lacks what the build needs
├── ProcessDied      a process of the control plane ended; the message ends with its last output
├── NotReady         something did not become ready in time
└── CommandFailed    kubectl or helm ended with an error; the message contains its stderr
"""

from greensched_core.errors import GreenSchedError


class BuildFailed(GreenSchedError):
    """A program could not be built; the message says why and names the log."""


class CannotBuildHere(BuildFailed):
    """The machine or the clone lacks what the build needs; the message says what."""


class ProcessDied(GreenSchedError):
    """A process ended unexpectedly; the message ends with its last output."""


class NotReady(GreenSchedError):
    """Something did not become ready in time; the message says what, and how long we waited."""


class CommandFailed(GreenSchedError):
    """A command such as kubectl or helm ended with an error."""

    def __init__(self, command: str, returncode: int, stderr: str) -> None:
        super().__init__(f"{command} ended with {returncode}: {stderr.strip()}")
        self.returncode = returncode
        self.stderr = stderr
