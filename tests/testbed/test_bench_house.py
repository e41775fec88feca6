"""What `make bench-house` counts, and that the house holds what it holds today."""

from pathlib import Path

import pytest

from benchmarks import house


def test_no_folder_and_no_file_is_larger_than_they_may_be() -> None:
    told = house.measure_sizes()
    assert told["files_in_largest_folder"] <= 30 and told["longest_file"] <= 400
    assert told["median_function"] <= 10


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
