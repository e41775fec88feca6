from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from greensched_cli.reproduce import NAMES

Run = Callable[..., Any]
DOCUMENT = Path(__file__).parents[2] / "docs" / "reproductions.md"


def test_every_name_has_a_module_and_a_section() -> None:
    text = DOCUMENT.read_text()
    for name in NAMES:
        module = import_module(f"greensched_simulator.reproductions.{name.replace('-', '_')}")
        assert module.TITLE and isinstance(module.NEEDS_DATA, bool) and module.reproduce
        assert f"\n| `{name}` |" in text and f"\n## {name}\n" in text


def test_what_needs_no_data_runs_without(greensched: Run) -> None:
    done = greensched("reproduce", "ecokube")
    assert (done.returncode, done.stderr) == (0, "")
    assert "3 of 3 figures are the published ones" in done.stdout


def test_what_needs_data_says_where_it_is_looked_for(greensched: Run, tmp_path: Path) -> None:
    done = greensched("reproduce", "zeus")
    assert (done.returncode, done.stdout) == (2, "")
    assert "give --data FOLDER or set GREENSCHED_DATA" in done.stderr
    done = greensched("reproduce", "zeus", "--data", str(tmp_path))
    assert done.returncode == 2
    assert "summary_power_v100.csv cannot be read" in done.stderr


def test_an_unknown_name_is_refused_with_those_there_are(greensched: Run) -> None:
    done = greensched("reproduce", "nobody")
    assert done.returncode == 2
    assert "there is no reproduction 'nobody': there is ecokube, gaia," in done.stderr
