from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from greensched_cli.simulation.reproduce import NAMES

Run = Callable[..., Any]
pytestmark = pytest.mark.engine
PAGE = Path(__file__).parents[3] / "docs" / "reproductions.md"


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_a_module_and_a_section_of_the_page(name: str) -> None:
    told = import_module(f"greensched_simulator.reproductions.{name.replace('-', '_')}")
    assert told.TITLE and callable(told.reproduce) and isinstance(told.NEEDS_DATA, bool)
    page = PAGE.read_text(encoding="utf-8")
    assert f"| `{name}` | " in page
    assert f"\n## {name}\n" in page


@pytest.mark.parametrize("given", [[], ["everything"]])
def test_an_unknown_name_or_none_is_refused_with_those_that_are(
    greensched: Run, given: list[str]
) -> None:
    done = greensched("reproduce", *given)
    assert (done.returncode, done.stdout) == (2, "")
    assert all(name in done.stderr for name in NAMES)


def test_without_the_data_it_says_where_that_is_written(greensched: Run, tmp_path: Path) -> None:
    done = greensched("reproduce", "zeus", "--data", str(tmp_path / "nowhere"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no folder" in done.stderr and "docs/reproductions.md" in done.stderr


def test_what_needs_no_data_runs_without(greensched: Run) -> None:
    done = greensched("reproduce", "ecokube")
    assert (done.returncode, done.stderr) == (0, "")
    assert "3 of 3 figures equal the published ones" in done.stdout


def test_what_needs_data_says_where_it_is_looked_for(greensched: Run, tmp_path: Path) -> None:
    done = greensched("reproduce", "zeus")
    assert (done.returncode, done.stdout) == (2, "")
    assert "give --data FOLDER or set GREENSCHED_DATA" in done.stderr
    done = greensched("reproduce", "zeus", "--data", str(tmp_path))
    assert done.returncode == 2
    assert "summary_power_v100.csv cannot be read" in done.stderr
