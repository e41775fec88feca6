"""runc for a root that has no CAP_SYS_RESOURCE: what needs that capability is not asked for.

Docker's engine starts this file as its runtime. It takes the capability, the resource limits and a
lowered OOM score out of what runc is told, and becomes runc.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

_CAPABILITY = "CAP_SYS_RESOURCE"


def reduced(process: dict[str, Any]) -> dict[str, Any]:
    """Return a process of the OCI runtime specification without what needs the capability."""
    kept = {key: value for key, value in process.items() if key != "rlimits"}
    if kept.get("oomScoreAdj", 0) < 0:
        del kept["oomScoreAdj"]
    sets = kept.get("capabilities")
    if sets:
        kept["capabilities"] = {
            name: [each for each in capabilities if each != _CAPABILITY]
            for name, capabilities in sets.items()
        }
    return kept


def reduce_what_is_named(arguments: list[str]) -> None:
    """Rewrite the container's or the process's file that runc's arguments name."""
    for flag, value in zip(arguments, arguments[1:], strict=False):
        if flag in ("--bundle", "-b"):
            path = Path(value, "config.json")
            config = json.loads(path.read_text())
            path.write_text(json.dumps({**config, "process": reduced(config["process"])}))
        elif flag in ("--process", "-p"):
            path = Path(value)
            path.write_text(json.dumps(reduced(json.loads(path.read_text()))))


if __name__ == "__main__":
    reduce_what_is_named(sys.argv[1:])
    os.execvp("runc", ["runc", *sys.argv[1:]])
