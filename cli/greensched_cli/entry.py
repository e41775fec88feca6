"""The entry point of the `greensched` program; it reports a missing package in one line."""

import sys


def main() -> None:
    """Run the command line; if a package is missing, print how to install it and exit with 2."""
    try:
        from greensched_cli.__main__ import main as run
    except ModuleNotFoundError as fault:
        if (fault.name or "").startswith("greensched"):
            raise
        print(
            f"greensched: {fault.name} is missing: pip install 'greensched[cli]'", file=sys.stderr
        )
        sys.exit(2)
    run()
