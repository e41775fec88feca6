"""The entry points of the programs; they report a missing package in one line."""

import io
import os
import shlex
import sys
from contextlib import redirect_stdout, suppress

# Typer breaks the help of a completed word into lines this wide; shells take each for a word.
_UNBROKEN = {"COLUMNS": "10000"}


def main() -> None:
    """Run the command line; if a package is missing, print how to install it and exit with 2."""
    if any(name.endswith("GREENSCHED_COMPLETE") for name in os.environ):  # a shell asks for words
        os.environ |= _UNBROKEN
    try:
        from greensched_cli.__main__ import main as run
    except ModuleNotFoundError as fault:
        if (fault.name or "").startswith("greensched"):
            raise
        from greensched_cli.installation import install_command

        print(f"greensched: {fault.name} is missing: {install_command('cli')}", file=sys.stderr)
        sys.exit(2)
    run()


def complete_for_kubectl() -> None:
    """Print what completes `kubectl greensched …`, as kubectl asks its plugins for.

    The words are our arguments, the last of them incomplete. A line is a word and, behind a tab,
    its help; the last line says that no files complete it (ShellCompDirectiveNoFileComp of cobra).
    """
    from greensched_cli.__main__ import app

    *words, incomplete = sys.argv[1:] or [""]
    os.environ |= _UNBROKEN | {  # as Typer's completion of the shell fish asks
        "_GREENSCHED_COMPLETE": "complete_fish",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "_TYPER_COMPLETE_ARGS": f"{shlex.join(['greensched', *words])} {incomplete}",
    }
    found = io.StringIO()
    with suppress(SystemExit), redirect_stdout(found):
        app(prog_name="greensched")
    print(*filter(None, found.getvalue().splitlines()), ":4", sep="\n")
