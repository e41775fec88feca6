"""`greensched train`: trains a policy as a configuration says, and exports it as a bundle.

The verb imports the training when it runs, so that --help answers immediately.
"""

from pathlib import Path
from typing import Annotated

import typer

from greensched_cli.extras import needs


@needs("train", "greensched train")
def train(
    config: Annotated[Path, typer.Argument(help="Configuration in YAML (docs/training.md).")],
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for checkpoint, curves and bundle; by default build/training/NAME. If it "
            "has a checkpoint, training goes on from there."
        ),
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option(min=1, help="Processes; by default one per core. Results are the same."),
    ] = None,
) -> None:
    """Train a policy, and export the best one found as a bundle; go on after an interruption."""
    from greensched_cli.training.training_terminal import train_and_print
    from greensched_train.training_config import read_config

    raise typer.Exit(train_and_print(read_config(config), config, out, processes))
