"""Markdown tables, and their insertion into pages that are otherwise written by hand."""

import re
from collections.abc import Iterable


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a table; the text of each cell is joined into one line."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(row(line) for line in lines)


def row(cells: Iterable[str]) -> str:
    """Return a line of a table."""
    return f"| {' | '.join(map(_cell, cells))} |"


def with_table(page: str, name: str, text: str) -> str:
    """Return a page with `text` between its marks of that name; raise ValueError without marks."""
    begin, end = f"<!-- {name}: written by `make docs` -->", f"<!-- end of {name} -->"
    place = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if not place.search(page):
        raise ValueError(f"no {begin} … {end} in the page")
    return place.sub(lambda _: f"{begin}\n\n{text}\n\n{end}", page)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
