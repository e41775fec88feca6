"""Tables on a terminal."""

from collections.abc import Collection, Sequence
from typing import Literal

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

CellTone = Literal["", "better", "worse"]
TableCell = tuple[str, CellTone] | str  # the simulator's cells are such tuples
TableRow = Sequence[TableCell]

_STYLES = {"better": "green", "worse": "bold red", "": ""}
_PIPED_COLUMNS = 160  # if the width is unknown
_NARROW_COLUMNS = 100


def plain_console(*, to_stderr: bool = False) -> Console:
    """Return a console that prints text unchanged: no markup, emoji or highlights."""
    width = None if Console(stderr=to_stderr).is_terminal else _PIPED_COLUMNS
    return Console(highlight=False, markup=False, emoji=False, width=width, stderr=to_stderr)


def print_table(
    console: Console, title: str, rows: Sequence[TableRow], texts: Collection[str] = ()
) -> None:
    """Print a table whose first row is its head; align figures right, and colour tones.

    Columns that do not fit are printed below, after the first column again; nothing is cut off.
    The first column and those whose heads are in `texts` are aligned left, and broken into lines
    where they are too wide.
    """
    first, *widths = (max(_width(row[at]) for row in rows) for at in range(len(rows[0])))
    first = min(first, console.width // 2)  # of a wider one the lines are broken
    is_tight = console.width < _NARROW_COLUMNS  # one space between columns
    gap, taken, groups = 1 if is_tight else 2, first, [[0]]
    for at, own in enumerate(widths, start=1):
        if len(groups[-1]) > 1 and taken + gap + own > console.width:
            taken = first
            groups.append([0])
        taken += gap + own
        groups[-1].append(at)
    for number, group in enumerate(groups):
        if number:
            console.print()
        part = [[row[at] for at in group] for row in rows]
        console.print(_table(title, part, texts, is_tight=is_tight))


def _table(
    title: str, rows: Sequence[TableRow], texts: Collection[str], *, is_tight: bool
) -> Table:
    head, *body = rows
    table = Table(
        title=title or None, title_justify="left", title_style="bold underline", box=None,
        header_style="bold", pad_edge=False, collapse_padding=is_tight,
    )  # fmt: skip
    for number, column in enumerate(head):
        is_figure = number > 0 and column not in texts
        table.add_column(
            _text(column),
            justify="right" if is_figure else "left",
            no_wrap=is_figure,
            overflow="fold",
        )
    for row in body:
        table.add_row(*map(_text, row))
    return table


def _width(cell: TableCell) -> int:
    return max(map(cell_len, _text(cell).plain.split("\n")))


def _text(cell: TableCell) -> Text:
    text, tone = (cell, "") if isinstance(cell, str) else cell
    return Text(text, style=_STYLES[tone])
