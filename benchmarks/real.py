"""`make bench-real`: test results of our images on nodes that really run them, in one run.

It counts only tests that ran; a skipped test has not passed. Writes build/bench/real.json.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.bench_cluster import machine
from benchmarks.command_line import ROOT, parse, result_file, write_json
from greensched_testbed.end_to_end.counted import Counted, mended, read_results
from greensched_testbed.images.building import COMPONENTS, ImageStore
from greensched_testbed.images.weights import weights_mb
from greensched_testbed.requirements import IMAGES, missing

EVERY_TEST = "tests"
IMAGE_TESTS = ("-m", "image", "tests/images")  # `make test` leaves them out
# Images, nodes and kind take half an hour and root.
_SMALLEST = {"only": ("findings",), "tests": "tests/core/test_bodies.py"}
E2E_FIGURES = ROOT / "build/e2e/figures.json"
KIND_FIGURES = ROOT / "build/e2e/kind.json"
GRAVEST = frozenset(
    {2, 4, 5, 8, 20, 26, 28}
)  # findings of the review of security and reliability, 2026-11
_HEAVY_MB = 5.0
# What tests write themselves; some of it only after their cluster is removed.
_MEASURED = {
    "e2e": (
        *("nodes_ready_s", "install_ready_s", "worst_memory_share"),
        *("removed_s", "e2e_s", "left_behind"),
    ),
    "kind": (
        *("kind_up_s", "kind_removed_s", "kind_s", "kind_left_behind"),
        *(f"kind_e2e_{outcome}" for outcome in ("passed", "failed", "skipped")),
    ),
}


def main() -> None:
    """Run the parts named on the command line, all by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only",
        nargs="*",
        default=tuple(_COUNTING),
        choices=tuple(_COUNTING),
        metavar="PART",
        help="run and report only these parts",
    )
    parser.add_argument(
        "--tests",
        default=EVERY_TEST,
        metavar="PATH",
        help="where the part `findings` looks for tests; with fewer than all of them it does not "
        "say which findings are open",
    )
    given = parse(parser, _SMALLEST)
    every = _COUNTING | {"findings": partial(_findings, given.tests)}
    parts = {name: part for name, part in every.items() if name in given.only}
    absent = measure(parts, result_file("real", given))
    if absent:
        sys.exit(f"bench-real: not measured: {', '.join(absent)}")


def measure(parts: Mapping[str, Callable[[], dict[str, Any]]], result: Path) -> list[str]:
    """Write what the parts count, null for what was not measured; return the names of that."""
    figures: dict[str, Any] = {"machine": machine()}
    print(f"machine: {figures['machine']}")
    for name, part in parts.items():
        figures |= dict.fromkeys(_MEASURED.get(name, ())) | part()
        figures |= {each: None for each, value in figures.items() if value != value}  # NaN
        write_json(result, figures)  # kept even if a later part fails
    for name, value in figures.items():
        if isinstance(value, float | int):
            print(f"{name}: {value:.4g}")
    return [name for name, value in figures.items() if value is None]


def _images() -> dict[str, Any]:
    if lacks := missing(IMAGES):
        raise SystemExit(f"bench-real builds and runs images, which needs {'; '.join(lacks)}")
    store = ImageStore(ROOT)
    base = store.base()
    sizes = {f"{each}_layers_mb": store.built(each).own_megabytes(base) for each in COMPONENTS}
    with store.root_of(store.built("operator")) as root:
        weights = {
            name: round(size, 1) for name, size in weights_mb(root).items() if size > _HEAVY_MB
        }
    print(
        "  in the operator's image: "
        + ", ".join(f"{name} {mb:g} MB" for name, mb in weights.items())
    )
    run = _pytest("images", IMAGE_TESTS)
    start = run.count("passed") == len(run.cases) > 0
    return {**sizes, "operator_weights_mb": weights, "images_start_as_chart_runs_them": int(start)}


def _findings(tests: str = EVERY_TEST) -> dict[str, Any]:
    run = _pytest("findings", ["-m", "finding", tests])
    figures: dict[str, Any] = {
        "finding_tests_passed": run.count("passed"),
        "finding_tests_failed": run.count("failed"),
    }
    if tests == EVERY_TEST:
        still_open = sorted(GRAVEST - mended(run.cases))
        figures |= {"gravest_open": len(still_open), "gravest_open_numbers": still_open}
    return figures


def _pytest(name: str, arguments: Sequence[str]) -> Counted:
    return _run(name, [sys.executable, "-m", "pytest", "-n0", "-q", *arguments])


def _run(name: str, command: Sequence[str]) -> Counted:
    """Run a command that calls pytest; the environment passes further options to pytest."""
    report = ROOT / f"build/bench/real-{name}.xml"
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    print(f"  {' '.join(command)}", flush=True)
    began = time.monotonic()
    _call(command, report)
    run = read_results(report)
    outcomes = (f"{run.count(each)} {each}" for each in ("passed", "failed", "skipped"))
    print(f"  {', '.join(outcomes)} in {time.monotonic() - began:.0f} s", flush=True)
    for why, number in run.reasons.items():
        print(f"    {number} skipped: {why}", flush=True)
    return run


def _call(command: Sequence[str], report: Path) -> None:
    options = f"{os.environ.get('PYTEST_ADDOPTS', '')} --junitxml={report}"
    subprocess.run(
        command, cwd=ROOT, env={**_environment(), "PYTEST_ADDOPTS": options}, check=False
    )


def _environment() -> dict[str, str]:
    """Return our environment without variables that `make` passes to a nested `make`."""
    make_variables = ("ARGS", "MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS")
    return {name: value for name, value in os.environ.items() if name not in make_variables}


def _e2e() -> dict[str, Any]:
    E2E_FIGURES.unlink(missing_ok=True)
    run = _run("e2e", ["make", "e2e"])
    return within_and_apart(run) | _written(E2E_FIGURES)


def within_and_apart(run: Counted) -> dict[str, Any]:
    """Return the numbers of end-to-end tests; passed are those whose time `e2e_s` contains.

    Those apart have nodes or an engine of their own, before. Failed and skipped ones of both count.
    """
    apart = sum(case.outcome == "passed" and case.is_apart for case in run.cases)
    within = run.count("passed") - apart
    return run.figures("e2e") | {"e2e_passed": within, "e2e_passed_apart": apart}


def _kind() -> dict[str, Any]:
    KIND_FIGURES.unlink(missing_ok=True)
    print("  make e2e-kind", flush=True)
    subprocess.run(["make", "e2e-kind"], cwd=ROOT, env=_environment(), check=False)
    return _written(KIND_FIGURES)


def _written(file: Path) -> dict[str, Any]:
    """Return the figures that tests wrote when they ended; nothing if they wrote none."""
    if not file.exists():
        print(f"  {file.relative_to(ROOT)} is missing: no test ran")
        return {}
    figures: dict[str, Any] = json.loads(file.read_text())
    return figures


_COUNTING: dict[str, Callable[[], dict[str, Any]]] = {
    "images": _images,
    "findings": _findings,
    "e2e": _e2e,
    "kind": _kind,
}


if __name__ == "__main__":
    main()
