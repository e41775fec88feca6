"""Every benchmark is started, at its smallest size, as a person starts it.

Those that take a minute even so are run by `make smallest-benchmarks`; `make test` starts them for
their options.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.command_line import ROOT

DATA = Path(os.environ.get("GREENSCHED_DATA") or ROOT.parent / "shared" / "data")
SERVERS = (pytest.mark.controlplane, pytest.mark.helm)
ENGINE = pytest.mark.engine
NEEDS_DATA = pytest.mark.skipif(not DATA.is_dir(), reason=f"no data sets at {DATA}")
# Started by a benchmark that is in the list.
PARTS = {"floor_extender", "noop_extender", "recorded_api"}
BENCHMARKS = [
    pytest.param("baselines", "baselines-smallest.md", marks=ENGINE, id="baselines"),
    pytest.param(
        "bench_operator",
        "operator-smallest.json",
        marks=(*SERVERS, ENGINE, NEEDS_DATA, pytest.mark.bench),
        id="bench_operator",
    ),
    pytest.param(
        "extender", "extender-smallest.json", marks=(*SERVERS, pytest.mark.bench), id="extender"
    ),
    pytest.param("house", "house-smallest.json", id="house"),
    pytest.param("ledger", "ledger-smallest.json", marks=pytest.mark.postgresql, id="ledger"),
    pytest.param(
        "parity",
        "parity-smallest.json",
        marks=(*SERVERS, ENGINE, NEEDS_DATA, pytest.mark.bench),
        id="parity",
    ),
    pytest.param("planner", "planner-smallest.json", id="planner"),
    pytest.param("real", "real-smallest.json", id="real"),
    pytest.param(
        "simulator",
        "simulator-smallest.json",
        marks=(ENGINE, NEEDS_DATA, pytest.mark.bench),
        id="simulator",
    ),
    pytest.param("when", "when-smallest.json", marks=ENGINE, id="when"),
]


@pytest.mark.parametrize(("module", "result"), BENCHMARKS)
def test_a_benchmark_runs_and_writes_its_figures_where_it_says(module: str, result: str) -> None:
    file = ROOT / "build/bench" / result
    file.unlink(missing_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{module}", "--smallest"],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.findall(r"^written to (.+)$", done.stdout, re.MULTILINE) == [f"build/bench/{result}"]
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".json":
        assert json.loads(text).keys() > {"machine"}, "figures, and of which machine"
    else:
        assert "hydro-and-coal" in text


@pytest.mark.parametrize("module", [str(each.values[0]) for each in BENCHMARKS])
def test_a_benchmark_starts_and_shows_its_options(module: str) -> None:
    command = [sys.executable, "-m", f"benchmarks.{module}", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "--smallest" in done.stdout


def test_every_benchmark_is_in_the_list() -> None:
    listed = {str(each.values[0]) for each in BENCHMARKS}
    files = (ROOT / "benchmarks").glob("*.py")
    runnable = {file.stem for file in files if '__name__ == "__main__"' in file.read_text()}
    assert listed == runnable - PARTS


def test_every_benchmark_of_the_makefile_is_in_the_list_and_takes_its_size() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    called = re.findall(r"-m benchmarks\.(\w+) ?(.*)$", makefile, re.MULTILINE)
    assert {name for name, _ in called} <= {str(each.values[0]) for each in BENCHMARKS}
    assert {options for _, options in called} == {"$(ARGS)"}
    targets = re.findall(r"^(bench-\w+|baselines):", makefile, re.MULTILINE)
    assert len(called) == len(targets), "each target calls one benchmark"
