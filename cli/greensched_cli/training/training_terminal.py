"""Trainings on a terminal: how far they are, how good, and what they leave."""

from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from greensched_cli.interrupts import exit_status_of, terminated_as_interrupted
from greensched_cli.terminal import plain_console
from greensched_train.checkpoints import CHECKPOINT, Progress, Validated, saved
from greensched_train.curves import CURVES, draw_curves
from greensched_train.trained_bundle import export_trained
from greensched_train.training import run_training
from greensched_train.training_config import TrainingConfig

TRAININGS, BUNDLE_FOLDER = Path("build/training"), "bundle"
_STEPS = "▁▂▃▄▅▆▇█"
_LONGEST_CURVE = 40  # characters


def train_and_print(
    config: TrainingConfig, file: Path, out: Path | None, processes: int | None
) -> int:
    """Train, print how good the policy gets, and export it; return the exit status.

    Raises BadInput as `train` does.
    """
    folder, console = out or TRAININGS / config.name, plain_console()
    before = saved(config, folder)
    if before is not None:
        console.print(f"{folder / CHECKPOINT}: goes on after {_done(before, config)}")
    try:
        with terminated_as_interrupted(), _bar(console) as bar:
            task = bar.add_task("training", total=config.method.generations)

            def on_progress(progress: Progress) -> None:
                bar.update(task, completed=progress.state.generation)
                last = progress.validated[-1]
                if last.generation == progress.state.generation:
                    bar.update(task, description=_curve(progress.validated))
                    bar.console.print(_line(last, progress), soft_wrap=True)
                    draw_curves(progress, folder)

            done = run_training(config, folder, on_progress, processes)
            command = ["greensched", "train", str(file)]
            export_trained(done, config, command, folder / BUNDLE_FOLDER)
    except KeyboardInterrupt as ended:
        console.print(f"interrupted; the same command goes on from {folder / CHECKPOINT}")
        return exit_status_of(ended)
    print(f"best on validation: generation {done.best_at}, in {done.seconds / 60.0:.1f} min")
    print(f"curves: {folder / CURVES}")
    print(f"bundle: {folder / BUNDLE_FOLDER}")
    print(f"next:   greensched simulate SCENARIO --policy onnx:{folder / BUNDLE_FOLDER}")
    return 0


def _bar(console: Console) -> Bar:
    return Bar(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        console=console, transient=True,
    )  # fmt: skip


def _line(found: Validated, progress: Progress) -> str:
    """Return a validation in a line."""
    kept = "  best so far" if progress.best_at == found.generation else ""
    return (
        f"generation {found.generation:4}: {100.0 * (found.cost_ratio - 1.0):+6.2f} % against "
        f"run-now+spread, {100.0 * found.missed:.2f} % of deadlines missed, at worst "
        f"{100.0 * found.worst_excess:.2f} points beyond what is allowed{kept}"
    )


def _curve(validated: list[Validated]) -> str:
    """Return the last validations as a line of bars: the lower, the better."""
    values = [each.objective for each in validated[-_LONGEST_CURVE:]]
    least, most = min(values), max(values)
    scale = (len(_STEPS) - 1) / max(most - least, 1e-12)
    return "".join(_STEPS[round((value - least) * scale)] for value in values)


def _done(progress: Progress, config: TrainingConfig) -> str:
    return f"generation {progress.state.generation} of {config.method.generations}"
