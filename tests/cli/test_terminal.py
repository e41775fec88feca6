"""Tables for terminals of any width."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from greensched_cli.terminal import TableRow, print_table

HEAD: TableRow = ("policy", "energy,\nkWh", "active,\nkWh", "cost,\nEUR", "carbon,\nkg")
BODY: list[TableRow] = [
    ("spread", "1,873.25", "462.125", "54.5", "201.75"),
    ("carbon-time", "609.375", "380.5", "28.9", "116.25"),
]


def printed(width: int) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    print_table(console, "what it took", [HEAD, *BODY])
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@given(st.integers(22, 200))
def test_no_figure_is_cut_off_however_narrow_it_is(width: int) -> None:
    words = printed(width).split()
    assert all(figure in words for row in BODY for figure in row)


@pytest.mark.parametrize(("width", "tables"), [(200, 1), (42, 1), (41, 2), (22, 4)])
def test_a_table_that_is_too_wide_goes_on_below_with_its_first_column(
    width: int, tables: int
) -> None:
    assert printed(width).count("what it took") == printed(width).count("spread") == tables


@given(st.text("abc-/", min_size=1, max_size=90), st.text("xyz ", max_size=90), st.integers(24, 90))
def test_nothing_is_cut_off_however_wide_the_texts_are(name: str, text: str, width: int) -> None:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    print_table(console, "", [("NODE", "WHY", "WATTS"), (name, text, "1,873.25")], ("WHY",))
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert all(len(line) <= width for line in lines)
    letters = "".join(lines)
    names, texts = ("".join(filter(kept.__contains__, letters)) for kept in ("abc-/", "xyz"))
    assert names in (name, 2 * name), "the first column stands before each group"
    assert texts == text.replace(" ", "")
    assert any("1,873.25" in line for line in lines)


def test_columns_of_text_stand_left_and_those_of_figures_right() -> None:
    console = Console(file=io.StringIO(), width=80, color_system=None)
    rows = [("NODE", "ZONE", "WATTS"), ("n1", "DE", "7"), ("n2", "US-CAL-CISO", "210")]
    print_table(console, "", rows, ("ZONE",))
    assert isinstance(console.file, io.StringIO)
    head, first, _ = console.file.getvalue().splitlines()
    assert first.index("DE") == head.index("ZONE")
    assert first.rstrip().endswith("    7")
