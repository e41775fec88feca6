"""`greensched policy`: list the names of policies, show a model bundle, check that it loads.

Each verb imports the policies when it runs, so that --help answers immediately.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from greensched_cli.extras import needs
from greensched_cli.output import AsOutput, Output, print_document
from greensched_cli.whole_summaries import WholeSummaries
from greensched_core.errors import BadInput

if TYPE_CHECKING:  # the policies need numpy
    from greensched_policies.learned.runners import HeadRun

app = typer.Typer(
    cls=WholeSummaries, help="List policies, read model bundles.", no_args_is_help=True
)

Folder = Annotated[
    Path | None,
    typer.Argument(help="Bundle folder with card.json and graphs; by default the shipped one."),
]


@app.command("list")
def list_policies(output: AsOutput = Output.TABLE) -> None:
    """List the names that --policy takes, by kind: join one of each by +, or give one preset."""
    from greensched_simulator.policy import names_by_kind

    names = names_by_kind()
    if output != Output.TABLE:
        print_document({kind: list(known) for kind, known in names.items()}, output)
        return
    for kind, known in names.items():
        print(f"{kind}:")
        for name in known:
            print(f"  {name}")


@app.command()
@needs("policies", "greensched policy check")
def check(folder: Folder = None, output: AsOutput = Output.TABLE) -> None:
    """Load a bundle as the extender and the operator do, and time it; exit with 2 if refused."""
    from greensched_policies.learned.bundle import load_bundle
    from greensched_policies.learned.card import SHIPPED_PRIOR
    from greensched_policies.learned.heads import HEADS

    folder = folder or SHIPPED_PRIOR
    if folder.is_file():
        raise BadInput(
            f"{folder} is a file; this checks a bundle's folder. `kubectl apply --dry-run=server` "
            "checks a GreenPolicy, and `greensched scenario check` a scenario that names one"
        )
    bundle = load_bundle(folder, needs=())
    if output != Output.TABLE:
        heads = {
            name: {
                "bytes": head.graph_bytes,
                "candidates": HEADS[name].most,
                "seconds": head.self_test_s,
                "runsIn": head.run.runner,
                "notInKernel": head.run.reason,
            }
            for name, head in bundle.heads.items()
        }
        print_document(
            {
                "folder": str(folder),
                "name": bundle.card.name,
                "isTrained": not bundle.card.untrained,
                "heads": heads,
            },
            output,
        )
        return
    trained = "untrained" if bundle.card.untrained else "trained"
    print(f"{folder}: would be loaded. {bundle.card.name}, {trained}.")
    for name, head in bundle.heads.items():
        print(
            f"{name}: {head.graph_bytes} bytes, {HEADS[name].most:,} candidates in "
            f"{head.self_test_s * 1e3:.2f} ms here, in {_in_words(head.run)}."
        )


def _in_words(run: "HeadRun") -> str:
    return f"{run.runner} ({run.reason})" if run.reason else f"the {run.runner}"


@app.command()
def show(folder: Folder = None, output: AsOutput = Output.TABLE) -> None:
    """Show what data a bundle was trained on, how it was trained and how it was evaluated.

    This reads the card only; `check` also loads the graphs.
    """
    from greensched_policies.learned.card import CARD_FILE, SHIPPED_PRIOR, describe_card

    folder = folder or SHIPPED_PRIOR
    described = describe_card(folder)
    if output != Output.TABLE:
        print_document(json.loads((folder / CARD_FILE).read_text(encoding="utf-8")), output)
        return
    from greensched_cli.terminal import plain_console, print_table

    rows = [("FIELD", "VALUE"), *described.items()]
    print_table(plain_console(), "", rows, ("VALUE",))
