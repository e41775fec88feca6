"""kind without Docker and registries: `python -m greensched_testbed.kind node-image | test [...]`.

`node-image` builds kind's node image and prints how to load it. `test` runs the end-to-end tests on
five nodes of kind; further arguments go to pytest.
"""

import signal
import sys
from pathlib import Path

from greensched_core.errors import GreenSchedError
from greensched_testbed.kind.end_to_end import run_tests
from greensched_testbed.kind.node_image import node_image, node_image_name


def main(arguments: list[str]) -> int:
    """Run the command in the arguments, and return the exit status."""
    match arguments:
        case ["node-image"]:
            path = node_image()
            print(f"docker load -i {path}")
            print(f"GREENSCHED_NODE_IMAGE={node_image_name()} deploy/kind/up.sh")
            return 0
        case ["test", *rest]:
            return run_tests(Path.cwd(), rest)
        case _:
            print(__doc__, file=sys.stderr)
            return 2


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # otherwise nothing is removed
    try:
        sys.exit(main(sys.argv[1:]))
    except GreenSchedError as fault:
        sys.exit(f"kind: {fault}")
