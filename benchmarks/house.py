"""`make bench-house`: sizes of the code, duplicates, and the weight of the command line.

Prints each figure and the place of the largest of its kind; writes build/bench/house.json.
"""

import argparse
import ast
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.bench_cluster import machine
from benchmarks.command_line import ROOT, parse, result_file, write_json
from benchmarks.house_sizes import named, sizes_of, verbs_of

VERBS = ("status", "report", "explain")
EXTRA = "cli"  # installs the command line for a cluster
TURNS = 7
# The installation asks a package index.
_SMALLEST = {"turns": 1, "only": ("sizes", "duplicates", "imports")}
LONGEST_FUNCTION = 40
MOST_PARAMETERS = 7
RUN_OF_LINES = 6
_MIB = 2**20

Place = tuple[Path, int]  # a file and a line number


def main() -> None:
    """Run the parts named on the command line, all by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=tuple(_PARTS), choices=tuple(_PARTS))
    parser.add_argument("--turns", type=int, default=TURNS, help="of each --help")
    given = parse(parser, _SMALLEST)
    parts = _PARTS | {"imports": partial(measure_imports, given.turns)}
    figures: dict[str, Any] = {"machine": machine()}
    for part in given.only:
        figures |= parts[part]()
    for name, value in figures.items():
        if isinstance(value, float | int):
            print(f"{name}: {value:.4g}")
    write_json(result_file("house", given), figures)


def measure_sizes() -> dict[str, Any]:
    """Return the sizes of folders, files and functions, and the most parameters of one."""
    product, every = _tracked("*/greensched_*/*.py"), _tracked("*.py")
    folders = Counter(path.parent for path in every)
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in product}
    functions = sizes_of(product)
    largest, files = folders.most_common(1)[0]
    longest = max(functions, key=lambda each: each.lines)
    widest = max(functions, key=lambda each: each.parameters)
    long = sum(each.lines > LONGEST_FUNCTION for each in functions)
    wide = sum(each.parameters > MOST_PARAMETERS for each in functions)
    print(f"  largest folder: {named(largest)}")
    print(f"  longest file: {named(max(lines, key=lambda path: lines[path]))}")
    print(f"  longest function: {longest.name}; {long} have more than {LONGEST_FUNCTION} lines")
    print(f"  most parameters: {widest.name}; {wide} take more than {MOST_PARAMETERS}")
    print(f"  options of {len(verbs_of(product))} verbs of the command line do not count")
    return {
        "files_in_largest_folder": files,
        "longest_file": max(lines.values()),
        "median_file": statistics.median(lines.values()),
        "longest_function": longest.lines,
        "median_function": statistics.median(each.lines for each in functions),
        "most_parameters": widest.parameters,
    }


def measure_duplicates() -> dict[str, Any]:
    """Return how often six or more lines in a row occur twice in product code.

    Blank lines, comments, docstrings and imports do not count, nor do lone brackets.
    """
    runs = runs_that_stand_twice(_tracked("*/greensched_*/*.py"))
    for (path, line), (other, other_line) in runs:
        print(f"  twice: {named(path)}:{line} and {named(other)}:{other_line}")
    return {"duplicates": len(runs)}


def runs_that_stand_twice(paths: Sequence[Path]) -> list[tuple[Place, Place]]:
    """Return the begin of each repeated run of six or more lines, with its first occurrence."""
    seen: dict[tuple[str, ...], Place] = {}
    runs: list[tuple[Place, Place]] = []
    for path in paths:
        lines = _code_lines(path)
        last = -2
        for at in range(len(lines) - RUN_OF_LINES + 1):
            window = tuple(text for _, text in lines[at : at + RUN_OF_LINES])
            if window not in seen:
                seen[window] = (path, lines[at][0])
                continue
            if at != last + 1:
                runs.append(((path, lines[at][0]), seen[window]))
            last = at
    return runs


def measure_imports(turns: int = TURNS) -> dict[str, Any]:
    """Return the wall seconds of the slowest --help, as the median of seven turns."""
    greensched = Path(sys.executable).with_name("greensched")
    medians = {}
    for verb in VERBS:
        took = []
        for _ in range(turns):
            began = time.perf_counter()
            subprocess.run([greensched, verb, "--help"], check=True, capture_output=True)
            took.append(time.perf_counter() - began)
        medians[verb] = statistics.median(took)
        print(f"  {verb} --help: {medians[verb]:.2f} s ({min(took):.2f} - {max(took):.2f})")
    return {"cli_import_s": max(medians.values())}


def measure_install() -> dict[str, Any]:
    """Return the size of a virtual environment with only the command line for a cluster."""
    with tempfile.TemporaryDirectory(prefix="greensched-house-") as scratch:
        folder = Path(scratch) / "venv"
        pip = folder / "bin/python", "-m", "pip", "install", "--quiet", "--no-input"
        pins = ROOT / f"requirements/{EXTRA}.txt"
        _call(sys.executable, "-m", "venv", folder)
        _call(*pip, "--disable-pip-version-check", "--require-hashes", "-r", pins)
        _call(*pip, "--disable-pip-version-check", "--no-deps", ROOT)
        _call(folder / "bin/greensched", "status", "--help")
        held = {
            path: sum(each.stat().st_size for each in path.rglob("*") if each.is_file())
            for path in folder.glob("lib/python*/site-packages/*")
        }
        heavy = sorted(held, key=lambda path: -held[path])[:6]
        print("  largest: " + ", ".join(f"{each.name} {held[each] / _MIB:.0f}" for each in heavy))
        size = sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())
    return {"cli_install_mib": size / _MIB}


_PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    "sizes": measure_sizes,
    "duplicates": measure_duplicates,
    "imports": measure_imports,
    "install": measure_install,
}


def _tracked(pattern: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", pattern], cwd=ROOT, capture_output=True, check=True
    )
    return [ROOT / name for name in listed.stdout.decode().split("\0") if name]


def _code_lines(path: Path) -> list[tuple[int, str]]:
    """Return the lines of a file that contain code, with their numbers."""
    source = path.read_text(encoding="utf-8")
    skipped: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_text or isinstance(node, ast.Import | ast.ImportFrom):
            assert isinstance(node, ast.stmt) and node.end_lineno is not None
            skipped.update(range(node.lineno, node.end_lineno + 1))
    numbered = enumerate(source.splitlines(), start=1)
    texts = [(number, line.strip()) for number, line in numbered if number not in skipped]
    return [(number, text) for number, text in texts if text.strip("()[]{},: ") and text[0] != "#"]


def _call(*command: str | Path) -> None:
    subprocess.run(command, check=True, capture_output=True)


if __name__ == "__main__":
    main()
