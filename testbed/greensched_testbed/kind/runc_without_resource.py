"""runc for root without CAP_SYS_RESOURCE: it drops settings that need this capability.

Docker's engine starts this file as its runtime. It removes the capability, resource limits and a
lowered OOM score from runc's input, and becomes runc.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

_CAPABILITY = "CAP_SYS_RESOURCE"


def reduced(process: dict[str, Any]) -> dict[str, Any]:
    """Return a process of the OCI runtime specification without settings that need it."""
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


def reduce_files(arguments: list[str]) -> None:
    """Rewrite the container's or process's file that runc's arguments name."""
    for flag, value in zip(arguments, arguments[1:], strict=False):
        if flag in ("--bundle", "-b"):
            path = Path(value, "config.json")
            config = json.loads(path.read_text())
            path.write_text(json.dumps({**config, "process": reduced(config["process"])}))
        elif flag in ("--process", "-p"):
            path = Path(value)
            path.write_text(json.dumps(reduced(json.loads(path.read_text()))))


if __name__ == "__main__":
    reduce_files(sys.argv[1:])
    os.execvp("runc", ["runc", *sys.argv[1:]])
