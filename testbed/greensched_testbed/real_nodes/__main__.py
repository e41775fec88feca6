"""Keeps a machine clean: `python -m greensched_testbed.real_nodes sweep | state FILE | left FILE`.

`sweep` removes what clusters left whose parents were killed. `state` saves the machine's state.
`left`, later, prints the differences and their number; it exits with 1 if there are any.
"""

import sys
from pathlib import Path

import msgspec

from greensched_testbed.real_nodes.cluster import sweep
from greensched_testbed.real_nodes.machine_state import MachineState, machine_state


def main(arguments: list[str]) -> int:
    """Run the command in the arguments, and return the exit status."""
    match arguments:
        case ["sweep"]:
            print("\n".join(f"removed {name}" for name in sweep()) or "nothing to remove")
            return 0
        case ["state", file]:
            Path(file).write_bytes(msgspec.json.encode(machine_state()))
            return 0
        case ["left", file]:
            before = msgspec.json.decode(Path(file).read_bytes(), type=MachineState)
            found = before.differences(machine_state())
            print("\n".join([*found, f"left behind: {len(found)}"]))
            return 1 if found else 0
        case _:
            print(__doc__, file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
