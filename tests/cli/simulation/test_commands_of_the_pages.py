"""The simulator's commands of README and docs/simulator.md, on their scenario, with fewer runs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
pytestmark = pytest.mark.engine

SCENARIO = "examples/scenarios/three-zones.yaml"
ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run as the pages do: they name the scenario from the root."""
    monkeypatch.chdir(ROOT)


def test_policies_are_compared_and_reported(greensched: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    compared = greensched(
        "compare", SCENARIO, "--policies", "run-now+spread,green-policy", "--seeds", "1",
        "--out", str(out),
    )  # fmt: skip
    assert (compared.returncode, compared.stderr) == (0, "")
    assert "green-policy" in compared.stdout
    reported = greensched("report", str(out))
    assert (reported.returncode, reported.stderr) == (0, "")
    assert (out / "report.html").is_file()


def test_a_bundle_is_compared(greensched: Run, tmp_path: Path) -> None:
    out, bundle = tmp_path / "run", "onnx:policies/greensched_policies/models/prior"
    compared = greensched(
        "compare", SCENARIO, "--policies", f"run-now+spread,{bundle}", "--seeds", "1",
        "--out", str(out),
    )  # fmt: skip
    assert (compared.returncode, compared.stderr) == (0, "")
    assert bundle in compared.stdout
    inputs = json.loads((out / "run.json").read_text())["inputs"]
    assert "card.json" in [each["file"] for each in inputs]


def test_one_policy_is_simulated(greensched: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = greensched("simulate", SCENARIO, "--policy", "carbon-time", "--out", str(out))
    assert (done.returncode, done.stderr) == (0, "")
    assert "carbon-time" in done.stdout
