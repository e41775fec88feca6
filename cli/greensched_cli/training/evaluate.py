"""`greensched evaluate`: a bundle against rules, in scenarios that it was not trained on.

The verb imports the evaluation when it runs, so that --help answers immediately.
"""

from pathlib import Path
from typing import Annotated

import typer

from greensched_cli.extras import needs
from greensched_cli.output import AsOutput, Output


@needs("simulator", "greensched evaluate")
def evaluate(
    bundle: Annotated[Path, typer.Argument(help="Bundle folder with card.json and graphs.")],
    scenarios: Annotated[
        Path | None,
        typer.Option(help="Folder of scenario files; by default those that test bundles."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds, from 1 on.")] = 5,
    every_where: Annotated[
        bool,
        typer.Option(
            "--all-rules",
            help="Compare with all combinations of when, where and cap rules, instead of those "
            "with the where rules spread and weighted-cost.",
        ),
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the table as JSON and the plot.")
    ] = None,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Processes; by default one per core.")
    ] = None,
    output: AsOutput = Output.TABLE,
) -> None:
    """Compare a learned bundle with the strongest rules: cost, carbon and deadlines missed."""
    from greensched_cli.training.evaluation_terminal import EvaluationRequest, evaluate_and_print

    asked = EvaluationRequest(bundle, scenarios, seeds, every_where, out, processes, output)
    raise typer.Exit(evaluate_and_print(asked))
