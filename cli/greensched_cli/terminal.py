"""How tables look on a terminal."""

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
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


def fitting_tables(title: str, rows: Sequence[Row], width: int) -> Iterator[Table]:
    """Yield the table, or several that are no wider than so many letters: no figure is cut off.

    Each has the first column. In less than NARROW_COLUMNS columns stand closer together.
    """
    is_tight = width < NARROW_COLUMNS
    first, *widths = (max(_width(row[at]) for row in rows) for at in range(len(rows[0])))
    taken, chosen, gap = first, [0], 1 if is_tight else 2
    for at, own in enumerate(widths, start=1):
        if len(chosen) > 1 and taken + gap + own > width:
            yield titled_table(title, [[row[k] for k in chosen] for row in rows], is_tight=is_tight)
            taken, chosen = first, [0]
        taken += gap + own
        chosen.append(at)
    yield titled_table(title, [[row[k] for k in chosen] for row in rows], is_tight=is_tight)


def _width(cell: Cell | str) -> int:
    return max(map(cell_len, _text(cell).plain.split("\n")))


def _text(cell: Cell | str) -> Text:
    text, tone = cell if isinstance(cell, Cell) else (cell, "")
    return Text(text, style=_STYLES[tone])
