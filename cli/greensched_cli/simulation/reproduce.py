"""`greensched reproduce`: run a published protocol and compare our figures with the paper's.

The verb imports the simulator when it runs, so that --help answers immediately.
"""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from greensched_cli.extras import needs
from greensched_cli.output import AsOutput, Output, print_document
from greensched_core.errors import BadInput

if TYPE_CHECKING:
    from greensched_simulator.reproductions.tables import ComparedLine

# Modules of greensched_simulator.reproductions, with TITLE, NEEDS_DATA and reproduce(folder).
NAMES = (
    "archer2", "carbon-scaler", "deeprm", "ecokube", "ecopycsim", "gaia", "gaia-reserved",
    "lets-wait-awhile", "opitz", "zeus",
)  # fmt: skip


@needs("simulator", "greensched reproduce")
def reproduce(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(NAMES)}.")] = "",
    data: Annotated[
        Path | None,
        typer.Option(
            envvar="GREENSCHED_DATA", help="Folder of the published data (docs/reproductions.md)."
        ),
    ] = None,
    output: AsOutput = Output.TABLE,
) -> None:
    """Run a published result again; exit with 1 if a figure is outside its tolerance."""
    if name not in NAMES:
        wrong = f"there is no reproduction {name!r}" if name else "no reproduction is named"
        raise BadInput(f"{wrong}: give one of {', '.join(NAMES)}")
    module = import_module(f"greensched_simulator.reproductions.{name.replace('-', '_')}")
    if module.NEEDS_DATA and data is not None and not data.is_dir():
        raise BadInput(f"there is no folder {data}: docs/reproductions.md says where the data is")
    if module.NEEDS_DATA and data is None:
        raise BadInput(
            "where is the published data? give --data FOLDER or set GREENSCHED_DATA "
            "(docs/reproductions.md says what it holds)"
        )
    lines = module.reproduce(data)
    if output == Output.TABLE:
        _print_figures(module.TITLE, lines)
    else:
        print_document(_document(module.TITLE, lines), output)
    if not all(line.is_equal for line in lines):
        raise typer.Exit(1)


def _document(title: str, lines: "Sequence[ComparedLine]") -> dict[str, Any]:
    """Return the figures as JSON values; null if a figure was not published."""
    figures = [
        {
            "case": line.case,
            "figure": line.figure,
            "published": line.published if line.is_published else None,
            "ours": line.ours,
            "tolerance": line.tolerance if line.is_published else None,
            "isEqual": line.is_equal if line.is_published else None,
        }
        for line in lines
    ]
    return {"title": title, "figures": figures}


def _print_figures(title: str, lines: "Sequence[ComparedLine]") -> None:
    """Print our figures and the published ones, and how many are within their tolerance."""
    from greensched_cli.terminal import TableRow, plain_console, print_table

    head: TableRow = ("case", "figure", "published", "ours", "difference")
    rows: list[TableRow] = [
        (
            line.case,
            line.figure,
            f"{line.published:.4f}" if line.is_published else "none",
            f"{line.ours:.4f}",
            (
                f"{line.difference:+.4f}" if line.is_published else "",
                "" if line.is_equal else "worse",
            ),
        )
        for line in lines
    ]
    console = plain_console()
    print_table(console, title, [head, *rows], ("figure",))
    off = sum(not line.is_equal for line in lines)
    published = sum(line.is_published for line in lines)
    console.print(
        f"{published - off} of {published} figures equal the published ones within their tolerance"
    )
