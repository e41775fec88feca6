"""`make bench-operator`: all figures that the operator is judged by, in one run.

Prints workload, machine and spread, and writes build/bench/operator.json.
"""

import argparse
import os
from typing import Any

from benchmarks import operator_day, operator_scale
from benchmarks.bench_cluster import machine
from benchmarks.command_line import ROOT, parse, result_file, write_json

_SMALLEST = {
    "held": 20, "replans": 1, "seconds": 1.0, "rate": 1440.0, "jobs": 5, "longest_s": 3600.0,
}  # fmt: skip


def main() -> None:
    """Run the parts named on the command line, all by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--held", type=int, default=10_000, help="held Jobs")
    parser.add_argument("--seconds", type=float, default=60.0, help="seconds of reviews at 100/s")
    parser.add_argument("--rate", type=float, default=144.0, help="speed of the replayed day")
    parser.add_argument("--only", nargs="*", default=["scale", "day"], metavar="PART")
    parser.set_defaults(
        replans=operator_scale.REPLANS, jobs=operator_day.JOBS, longest_s=operator_day.LONGEST_S
    )
    given = parse(parser, _SMALLEST)
    figures: dict[str, Any] = {"machine": machine()}
    print(f"machine: {figures['machine']}")
    os.environ.setdefault("GREENSCHED_DATA", str(ROOT.parent / "shared" / "data"))
    # First, since it fails if data is missing.
    world = operator_day.day_world(given.jobs, given.longest_s) if "day" in given.only else None
    if "scale" in given.only:
        figures |= operator_scale.measure(given.held, given.replans, given.seconds, _say)
    if world is not None:
        figures |= operator_day.measure(world, given.rate, _say).figures()
    for name, value in figures.items():
        if isinstance(value, float | int):
            print(f"{name}: {value:.4g}")
    write_json(result_file("operator", given), figures)


def _say(line: str) -> None:
    print(f"  {line}", flush=True)


if __name__ == "__main__":
    main()
