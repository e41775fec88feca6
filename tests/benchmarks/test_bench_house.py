"""What `make bench-house` counts, and that the house holds what it holds today."""

from pathlib import Path

import pytest

from benchmarks import house, house_sizes


def test_no_folder_and_no_file_is_larger_than_they_may_be() -> None:
    told = house.measure_sizes()
    assert told["files_in_largest_folder"] <= 30 and told["longest_file"] <= 400
    assert told["median_function"] <= 10


def test_no_more_than_ten_runs_of_lines_stand_twice() -> None:
    assert house.measure_duplicates()["duplicates"] <= 10


def test_the_options_of_a_verb_are_left_apart_and_no_other_parameters(tmp_path: Path) -> None:
    package = tmp_path / "greensched_x"
    package.mkdir()
    takes = "(a, b, c, d, e, f, g, h): pass"
    (package / "verbs.py").write_text(f"def wired{takes}\ndef looks_alike{takes}\n")
    (package / "main.py").write_text(
        "import typer\nfrom greensched_x import verbs\nfrom greensched_x.verbs import looks_alike\n"
        "app = typer.Typer()\nother = object()\n"
        "app.command('wired')(verbs.wired)\nother.command('looks-alike')(looks_alike)\n"
        f"@app.command()\ndef decorated{takes}\n"
        f"@app.callback()\ndef root{takes}\n"
        f"@other.command()\ndef of_another{takes}\n"
    )
    sizes = house_sizes.sizes_of(sorted(package.glob("*.py")))
    counts = {each.name.rpartition(" ")[2]: each.parameters for each in sizes}
    apart = {name for name, count in counts.items() if count == 0}
    assert apart == {"wired", "decorated", "root"}
    assert {name for name, count in counts.items() if count == 8} == {"looks_alike", "of_another"}


def test_every_verb_is_found() -> None:
    verbs = house_sizes.verbs_of(sorted(house_sizes.ROOT.glob("cli/greensched_cli/**/*.py")))
    found = {name.removeprefix("greensched_cli.") for name in verbs}
    assert {"explain.decisions.explain", "testbed.cluster.up", "__main__.root"} <= found


@pytest.mark.parametrize(
    ("lines", "runs"),
    [
        pytest.param(5, 0, id="five-lines-are-none"),
        pytest.param(6, 1, id="six-lines"),
        pytest.param(9, 1, id="nine-lines-are-one-run"),
    ],
)
def test_a_run_of_lines_that_stands_twice_is_found_once(
    tmp_path: Path, lines: int, runs: int
) -> None:
    body = [f"    value_{number} = {number}" for number in range(lines)]
    for name in ("one", "other"):
        text = ["import os", f"def {name}() -> None:", f'    """What {name} does."""', *body]
        (tmp_path / f"{name}.py").write_text("\n".join(text) + "\n")
    assert len(house.runs_that_stand_twice(sorted(tmp_path.glob("*.py")))) == runs
