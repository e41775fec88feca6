"""What a training leaves in its folder, so that it can be killed at any time and goes on the same.

`checkpoint.npz` holds everything that the next generation needs. It is replaced whole, or not at
all: after a crash, or with a full disk, the last one is still there.
"""

import io
import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from greensched_core.errors import BadInput
from greensched_train.evolution import EvolutionState
from greensched_train.residual_nets import NetParameters
from greensched_train.training_config import TrainingConfig

CHECKPOINT = "checkpoint.npz"


@dataclass(frozen=True)
class Validated:
    """How good parameters are in all worlds of validation: means, and the worst world."""

    generation: int
    objective: float
    cost_ratio: float
    missed: float
    worst_excess: float


@dataclass
class Progress:
    """How far a training is; all but `seconds` are the same in each run of it."""

    state: EvolutionState
    best: NetParameters
    best_at: int = 0  # its generation
    validated: list[Validated] = field(default_factory=list)
    objectives: list[float] = field(default_factory=list)  # of each generation, in its worlds
    seconds: float = 0.0  # wall time, of all calls together


def save(progress: Progress, config: TrainingConfig, folder: Path) -> None:
    """Replace the checkpoint in `folder`. Raises BadInput if it cannot be written."""
    told = {
        "config": config.model_dump(mode="json"),
        "generation": progress.state.generation,
        "best_at": progress.best_at,
        "validated": [asdict(each) for each in progress.validated],
        "objectives": progress.objectives,
        "seconds": progress.seconds,
    }
    arrays: dict[str, Any] = dict(zip(_ARRAYS, progress.state[1:], strict=True))
    content = io.BytesIO()
    np.savez(content, told=np.array(json.dumps(told)), best=progress.best, **arrays)
    write_whole(folder / CHECKPOINT, content.getvalue())


def saved(config: TrainingConfig, folder: Path) -> Progress | None:
    """Return the progress in a folder, None if it has none.

    Raises BadInput if the checkpoint is of another configuration, or damaged.
    """
    path = folder / CHECKPOINT
    try:
        with np.load(io.BytesIO(path.read_bytes())) as content:
            arrays = {name: content[name] for name in content.files}
            told: dict[str, Any] = json.loads(str(arrays["told"]))
            state = EvolutionState(told["generation"], *(arrays[n] for n in _ARRAYS))
            best = arrays["best"]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as fault:
        raise BadInput(
            f"{path} is no checkpoint of a training ({fault}): move it away to begin anew"
        ) from fault
    if told["config"] != config.model_dump(mode="json"):
        raise BadInput(
            f"{path} is of another configuration ({_first_change(told['config'], config)}): "
            "give another --out, or the configuration that it began with"
        )
    validated = [Validated(**each) for each in told["validated"]]
    return Progress(state, best, told["best_at"], validated, told["objectives"], told["seconds"])


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file by new content, or leave it. Raises BadInput if it cannot be written."""
    new = path.with_name(f"{path.name}.new")
    try:
        with new.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except OSError as fault:
        raise BadInput(
            f"{path} cannot be written ({fault.strerror}); the one before, if any, is still there: "
            "make room, and run the same command again"
        ) from fault


_ARRAYS = EvolutionState._fields[1:]


def _first_change(saved: dict[str, Any], config: TrainingConfig) -> str:
    """Return the first setting that differs."""
    now = config.model_dump(mode="json")
    name = next((n for n in now if saved.get(n) != now[n]), "more settings")
    return f"{name} was {saved.get(name)!r}, and is {now.get(name)!r}"
