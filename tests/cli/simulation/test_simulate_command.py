"""The commands of the simulator, each in a process of its own, on a scenario of a few jobs."""

import csv
import json
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

Run = Callable[..., Any]
pytestmark = pytest.mark.engine
SCENARIO = """
name: tiny
description: A handful of jobs behind a grid that is clean at noon.
start: 2024-06-03T00:00:00Z
length: 1d
cluster:
  nodes:
    - {name: node, count: 4, hardware: epyc-7763-1s, cpu_cores: 128, memory: 512Gi, zone: SUN}
grids:
  SUN:
    carbon: {shape: solar}
    price: {shape: solar}
workload:
  generator: {jobs: 60}
  slack: 12h
"""


@pytest.fixture
def tiny(tmp_path: Path) -> str:
    path = tmp_path / "tiny.yaml"
    path.write_text(SCENARIO)
    return str(path)


def test_a_simulation_prints_what_was_done_first_and_writes_its_folder(
    greensched: Run, tiny: str, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    done = greensched("simulate", tiny, "--policy", "carbon-time", "--seed", "7", "--out", str(out))
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    table = lines.index(next(line for line in lines if "carbon-time+weighted-cost, seed 7" in line))
    told = [line.split("  ")[0] for line in lines[table:] if line.strip()]
    assert told[1:4] == ["jobs done", "work done, core-h", ""]
    assert [word for word in told if word in ("deadlines met", "energy, kWh", "carbon, kg")] == [
        "deadlines met", "energy, kWh", "carbon, kg",
    ]  # fmt: skip
    assert "60 of 60" in done.stdout
    assert "operational and location-based" in done.stdout
    assert (out / "report.html").is_file() and (out / "plots" / "power.svg").is_file()
    summary = json.loads((out / "run.json").read_text())
    assert summary["command"][:2] == ["greensched", "simulate"]
    assert (summary["seeds"], summary["jobs"]) == ([7], 60)


def test_a_simulation_prints_its_figures_as_one_document(
    greensched: Run, tiny: str, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    done = greensched("simulate", tiny, "--policy", "spread", "--out", str(out), "-o", "json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert f"report: {out / 'report.html'}" in done.stderr
    assert told == {
        "folder": str(out), **json.loads((out / "run.json").read_text()),
        "outcomes": told["outcomes"],
    }  # fmt: skip
    (outcome,) = told["outcomes"]
    (row,) = csv.DictReader((out / "outcomes.csv").read_text().splitlines())
    assert {name: "" if value is None else str(value) for name, value in outcome.items()} == row
    assert outcome["jobs_done"] == 60 and outcome["carbon_marginal_g"] is None


def assert_document_is_printed_again(greensched: Run, folder: Path) -> None:
    again = greensched("report", str(folder), "-o", "yaml")
    assert (again.returncode, again.stderr) == (0, f"report: {folder / 'report.html'}\n")
    told = yaml.safe_load(again.stdout)
    assert len(told["outcomes"]) == len(told["policies"]) * len(told["seeds"])


def test_a_comparison_pairs_seeds_against_the_named_baseline_and_is_drawn_again(
    greensched: Run, tiny: str, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    done = greensched(
        "compare", tiny, "--policies", "lowest-slot,bin-pack", "--seeds", "2",
        "--baseline", "least-cost", "--levers", "--bound", "--out", str(out),
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "tiny: 5 policies, 2 seeds" in done.stdout, "two that tell lowest-slot's levers apart"
    assert "what each lever adds" in done.stdout
    assert "share of the possible saving" in done.stdout
    assert len(json.loads((out / "run.json").read_text())["least"]) == 2
    assert "change against least-cost" in done.stdout
    assert "paired by seed: mean over 2 seeds" in done.stdout
    assert re.search(r"All are billed for [\d.,]+ h, until the last job under any", done.stdout)
    assert_document_is_printed_again(greensched, out)
    page = (out / "report.html").read_bytes()
    (out / "report.html").unlink()
    again = greensched("report", str(out))
    assert (again.returncode, again.stdout) == (0, f"report: {out / 'report.html'}\n")
    assert (out / "report.html").read_bytes() == page


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("simulate TINY --policy magic", "there is no policy 'magic'"),
        ("compare TINY --policies all,magic,wizard", "'magic'; there is no policy 'wizard'"),
        ("compare TINY --baseline +", "there is no policy '' in '+'"),
        ("compare TINY --seeds 0", "--seeds must be at least 1, not 0"),
        ("simulate TINY --policy spread --seed -1", "--seed must be from 0"),
        ("simulate TINY --policy spread --seed 9223372036854775808", "--seed must be from 0"),
        ("bound TINY --seed -1", "--seed must be from 0 to 9223372036854775807, not -1"),
        ("bound TINY --seed 9223372036854775808", "--seed must be from 0"),
        ("simulate none.yaml --policy spread", "there is no file none.yaml"),
        ("simulate TINY --policy spread --out FOLDER", "is not empty"),
        ("simulate TINY --policy spread --out TINY", "is not a folder that you can write to"),
        ("simulate TINY --policy spread --out TINY/x", "is not a folder that you can write to"),
        ("compare TINY --policies lest-carbon", "'lest-carbon' (close: least-carbon"),
        ("compare TINY --policies spread+topsis", "two where rules, spread and topsis"),
        ("report FOLDER", "is not the folder of a finished run"),
    ],
)
def test_bad_input_is_one_clear_line(greensched: Run, tiny: str, command: str, reason: str) -> None:
    places = {"TINY": tiny, "FOLDER": str(Path(tiny).parent)}
    done = greensched(*(places.get(each, each.replace("TINY", tiny)) for each in command.split()))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("greensched: ") and done.stderr.count("\n") == 1
    assert reason in done.stderr


def test_seeds_beyond_the_largest_are_refused_before_anything_runs(
    greensched: Run, tiny: str
) -> None:
    Path(tiny).write_text(f"{SCENARIO}seed: {2**63 - 2}\n")
    done = greensched("compare", tiny, "--policies", "spread", "--seeds", "3")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"greensched: --seeds 3, starting at the scenario's seed {2**63 - 2}, exceed {2**63 - 1}: "
        "give the scenario a smaller seed\n"
    )


def test_what_policies_take_stands_beside_the_bound_that_none_is_below(
    greensched: Run, tiny: str
) -> None:
    done = greensched("bound", tiny, "--policies", "run-now+spread,planned-window")
    assert (done.returncode, done.stderr) == (0, "")
    figures = [line.split(":")[0] for line in done.stdout.splitlines() if ": at least" in line]
    assert figures == ["energy", "carbon", "cost"]
    above = [float(line.split("%")[0].split()[-1]) for line in done.stdout.splitlines()
             if "% above" in line]  # fmt: skip
    assert len(above) == 6
    assert min(above) >= 0.0
    assert "% captured" in done.stdout


BESIDE = """
services:
  - name: web
    requests: {generator: {rate_per_s: 20}}
    service_time: {mean: 500ms}
    objective: {share: 0.95, within: 4s}
    replica: {cpu_cores: 2, memory: 1Gi, places: 4}
"""


def test_a_bound_says_what_it_leaves_out_of_services_failures_and_rejected_work(
    greensched: Run, tiny: str
) -> None:
    node = SCENARIO.replace("zone: SUN", "zone: SUN, failures: {every: 12h, repair: 1h}")
    Path(tiny).write_text(node + BESIDE)
    done = greensched("bound", tiny, "--policies", "run-now+spread,reject-long")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"tiny, seed \d+: 60 jobs, \d+ lives of replicas", done.stdout)
    assert "nodes fail: the bound loses no work" in done.stdout
    assert re.search(r"runs under all policies below:\nfor \d+\.\d % of their lives", done.stdout)
    assert "the bound may leave that work undone, at its charge" in done.stdout


def test_a_slot_that_is_too_short_is_refused(greensched: Run, tiny: str) -> None:
    done = greensched("bound", tiny, "--slot", "5s")
    assert (done.returncode, done.stdout) == (2, "")
    assert "at least a minute" in done.stderr


Begun = Callable[[int], subprocess.Popen[str]]


@pytest.fixture
def begun(tiny: str, tmp_path: Path) -> Iterator[Begun]:
    """Begins a comparison of so many seeds into `run`; returns it when the first round is there."""
    with ExitStack() as running:

        def begin(seeds: int) -> subprocess.Popen[str]:
            out = tmp_path / "run"
            command = [sys.executable, "-m", "greensched_cli", "compare", tiny, "--out", str(out)]
            process = running.enter_context(
                subprocess.Popen(
                    [*command, "--policies", "spread", "--seeds", str(seeds)],
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                )
            )  # fmt: skip
            while not (out / ".unfinished").is_dir() and process.poll() is None:
                time.sleep(0.05)
            return process

        yield begin


@pytest.mark.parametrize(
    ("blow", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["ctrl-c", "sigterm"]
)
def test_a_comparison_that_is_interrupted_keeps_nothing(
    begun: Begun, tmp_path: Path, blow: signal.Signals, status: int
) -> None:
    running = begun(2000)
    running.send_signal(blow)
    told, faults = running.communicate(timeout=60)
    assert (running.returncode, told.splitlines()[-1]) == (status, "interrupted: nothing is kept")
    assert faults == ""
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="Linux alone limits a process anew")
@pytest.mark.parametrize(
    ("file_bytes", "seeds", "kept"),
    [
        pytest.param(1, 2000, "nothing is kept", id="rows"),
        pytest.param(
            1_000_000, 5, "all rows are in {}, `greensched report` draws its report", id="report"
        ),
    ],
)
def test_what_cannot_be_written_is_reported_in_a_line_with_what_is_kept(
    begun: Begun, tmp_path: Path, file_bytes: int, seeds: int, kept: str
) -> None:
    running, out = begun(seeds), tmp_path / "run"
    resource.prlimit(running.pid, resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
    _, faults = running.communicate(timeout=60)
    assert running.returncode == 1
    assert faults.startswith("greensched: [Errno 27]") and faults.count("\n") == 1
    assert faults.endswith(f"; {kept.format(out)}\n")
    assert (out / "run.json").is_file() == out.exists() == ("all rows" in kept)


def test_a_report_that_cannot_be_written_is_reported_in_a_line(
    greensched: Run, begun: Begun, tmp_path: Path
) -> None:
    begun(1).communicate(timeout=60)
    page = tmp_path / "run" / "report.html"
    page.unlink()
    page.mkdir()
    done = greensched("report", str(page.parent))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "Is a directory" in done.stderr and str(page) in done.stderr


def test_a_bound_is_reported_as_json_too(greensched: Run, tiny: str) -> None:
    given = ("bound", tiny, "--policies", "run-now+spread, least-carbon")
    done = greensched(*given, "-o", "json")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)["figures"]
    assert [figure["name"] for figure in figures] == ["energy", "carbon", "cost"]
    baseline, other = figures[1]["policies"]
    assert baseline["capturedPercent"] is None
    assert figures[1]["bound"] <= other["total"]
    assert f"{figures[1]['bound']:,.2f} kg" in greensched(*given).stdout


@pytest.mark.parametrize(("slot", "told"), [("5", "--slot: '5' is no"), ("30s", "--slot must be")])
def test_a_slot_that_cannot_be_used_is_reported_with_its_option(
    greensched: Run, tiny: str, slot: str, told: str
) -> None:
    done = greensched("bound", tiny, "--slot", slot)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
