"""`greensched policy`: read a model bundle, and say whether it would be loaded."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from greensched_policies.bundle import SHIPPED_PRIOR, load_bundle
from greensched_policies.bundle_description import describe_bundle

app = typer.Typer(help="Read model bundles.", no_args_is_help=True)

Folder = Annotated[
    Path, typer.Argument(help="Folder with where.onnx and card.json; the shipped one by default.")
]


@app.command()
def check(folder: Folder = SHIPPED_PRIOR) -> None:
    """Load a bundle as the extender would; exit 2 and say why when it is refused."""
    bundle = load_bundle(folder)
    Console().print(
        f"{folder}: would be loaded. {bundle.card.name}, {bundle.graph_bytes} bytes, "
        f"5,000 candidates in {bundle.self_test_s * 1e3:.2f} ms here.",
        highlight=False,
        soft_wrap=True,
    )


@app.command()
def show(folder: Folder = SHIPPED_PRIOR) -> None:
    """Print what a bundle is: what it was trained on, how, and how good it was found to be."""
    table = Table(show_header=False, box=None, pad_edge=False)
    for name, text in describe_bundle(load_bundle(folder)).items():
        table.add_row(name, text)
    Console(highlight=False, width=None if Console().is_terminal else 160).print(table)
