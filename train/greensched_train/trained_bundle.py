"""The bundle that a training leaves: its best nets, and a card that says where they come from."""

import platform
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

from greensched_train.checkpoints import Progress
from greensched_train.data_split import TRAINING, VALIDATION, DataPart
from greensched_train.export import Origin, export
from greensched_train.residual_nets import ResidualNets
from greensched_train.training_config import TrainingConfig

_CPU_INFO = Path("/proc/cpuinfo")


def export_trained(
    progress: Progress, config: TrainingConfig, command: Sequence[str], folder: Path
) -> None:
    """Write the best nets of a training as a bundle, checked as those do that serve it."""
    nets = ResidualNets(config.hidden).nets_of(progress.best)
    kept = next(each for each in progress.validated if each.generation == progress.best_at)
    evaluation = {
        "train_minutes": round(progress.seconds / 60.0, 2),
        "generations": float(progress.state.generation),
        "kept_generation": float(progress.best_at),
        "validation_worlds": float(config.validation.worlds),
        "validation_cost_pct": round(100.0 * (kept.cost_ratio - 1.0), 3),
        "validation_missed_pct": round(100.0 * kept.missed, 3),
    }
    trained, chosen = config.worlds.training, config.worlds.validation
    worlds = f"{_told(trained or TRAINING)}; chosen in {_told(chosen or VALIDATION)}"
    origin = Origin(
        config.name, f"{worlds}; on {machine()}", (config.seed,), shlex.join(command), commit(),
        evaluation,
    )  # fmt: skip
    export(nets, origin, folder)


def machine() -> str:
    """Return this machine in words."""
    lines = _CPU_INFO.read_text().splitlines() if _CPU_INFO.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{len(models)} threads of {models[0]}" if models else platform.machine()


def commit() -> str | None:
    """Return the commit of this code; None outside a checkout."""
    asked = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        found = subprocess.run(asked, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return found.stdout.strip()


def _told(part: DataPart | Path) -> str:
    if isinstance(part, Path):
        return f"the scenarios of the folder {part.name}"
    days = f"{part.begin:%Y-%m-%d} to {part.end:%Y-%m-%d}"
    traces = f"the traces {', '.join(part.traces)} and generated jobs"
    return f"worlds drawn from {', '.join(part.zones)}, {days}, with {traces}"
