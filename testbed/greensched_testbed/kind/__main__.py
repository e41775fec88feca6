"""kind without Docker and registries: `python -m greensched_testbed.kind node-image`.

It makes kind's node image and prints how to load it.
"""

import sys

from greensched_core.errors import GreenSchedError
from greensched_testbed.kind.node_image import node_image, node_image_name


def main(arguments: list[str]) -> int:
    """Do what the arguments say and return the exit status."""
    match arguments:
        case ["node-image"]:
            path = node_image()
            print(f"docker load -i {path}")
            print(f"GREENSCHED_NODE_IMAGE={node_image_name()} deploy/kind/up.sh")
            return 0
        case _:
            print(__doc__, file=sys.stderr)
            return 2


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except GreenSchedError as fault:
        sys.exit(f"kind: {fault}")
