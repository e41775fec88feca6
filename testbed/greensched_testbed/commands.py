"""Runs programs to their end: returns the output, or raises with it on failure."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from greensched_testbed.errors import BuildFailed, CannotBuildHere, CommandFailed, NotReady

_MOST_WORDS_SHOWN = 10
_MOST_LINES_TOLD = 15
_TIMEOUT_S = 120.0


def run_command(
    *command: str | Path,
    environment: Mapping[str, str] | None = None,
    stdin: str | None = None,
    timeout_s: float = _TIMEOUT_S,
) -> str:
    """Return what a program prints.

    Without `environment` it gets only the PATH. Raises CommandFailed if it fails, NotReady if it
    has not ended in time.
    """
    words = [str(each) for each in command]
    shown_command = " ".join([Path(words[0]).name, *words[1:_MOST_WORDS_SHOWN]])
    try:
        result = subprocess.run(
            words,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            env={"PATH": os.environ.get("PATH", os.defpath)}
            if environment is None
            else environment,
            check=False,
        )
    except subprocess.TimeoutExpired as fault:
        raise NotReady(f"{shown_command} did not end within {timeout_s:g} s") from fault
    if result.returncode != 0:
        raise CommandFailed(shown_command, result.returncode, result.stderr + result.stdout)
    return result.stdout


def run_builder(command: Sequence[str], folder: Path | None = None) -> str:
    """Run a program that builds or downloads, without a time limit, and return what it prints.

    It gets our environment (proxies, package indexes). Raises BuildFailed with its last output,
    CannotBuildHere if the program is missing.
    """
    try:
        result = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as fault:
        raise CannotBuildHere(f"{command[0]}: {fault}; `make e2e-setup` installs it") from fault
    if result.returncode != 0:
        last = "\n".join((result.stdout + result.stderr).splitlines()[-_MOST_LINES_TOLD:])
        raise BuildFailed(f"{command[0]} ended with {result.returncode}:\n{last}")
    return result.stdout
