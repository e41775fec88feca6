"""How tables look on a terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from greensched_simulator.cells import Cell, Row

_STYLES = {"better": "green", "worse": "bold red", "": ""}
_PIPED_COLUMNS = 160  # where nobody says how wide it is
NARROW_COLUMNS = 100


def plain_console() -> Console:
    """Return a console that prints text as it stands."""
    width = None if Console().is_terminal else _PIPED_COLUMNS
    return Console(highlight=False, markup=False, emoji=False, width=width)


def titled_table(title: str, rows: Sequence[Row], *, is_tight: bool = False) -> Table:
    """Return a table whose first row is its head; figures stand right, tones have colours.

    Columns of a tight one are a space apart.
    """
    head, *body = rows
    table = Table(
        title=title, title_justify="left", title_style="bold underline", box=None,
        header_style="bold", pad_edge=False, collapse_padding=is_tight,
    )  # fmt: skip
    for number, column in enumerate(head):
        table.add_column(_text(column), justify="right" if number else "left", no_wrap=True)
    for row in body:
        table.add_row(*map(_text, row))
    return table


def _text(cell: Cell | str) -> Text:
    text, tone = cell if isinstance(cell, Cell) else (cell, "")
    return Text(text, style=_STYLES[tone])
