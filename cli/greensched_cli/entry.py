"""The `greensched` program, also where what the command line needs is not installed."""

import sys


def main() -> None:
    """Run the command line; where a package is missing, say how to get it and exit with 2."""
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
