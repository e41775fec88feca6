"""`make baselines`: every policy on every scenario of the gallery, into docs/baselines.md.

The text above the page's marker stays; the tables below it are rewritten.
"""

import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.bench_cluster import ROOT, machine
from greensched_core.units import SECONDS_PER_HOUR, kwh_from_joules
from greensched_simulator.policy import BASELINE, Policy, policies_named, policy_named
from greensched_simulator.results.cells import Cell, Row, change_cell, count, short
from greensched_simulator.results.comparison import (
    CARBON,
    COST,
    ENERGY,
    MISSED,
    WAIT,
    ComparedFigure,
    Results,
    compare,
    difference,
    mean_outcome,
)
from greensched_simulator.results.tables import losses
from greensched_simulator.runs.outcome import Outcome
from greensched_simulator.world.scenario_loading import load_scenario

PAGE = ROOT / "docs/baselines.md"
MARKER = "<!-- Written by `make baselines` from here on; changes by hand are lost. -->"
GALLERY = ROOT / "examples/scenarios"
SEEDS = tuple(range(1, 11))
DATA = ROOT.parent / "shared" / "data"
_FIGURES = (("energy", ENERGY), ("cost", COST), ("carbon", CARBON))


def main() -> None:
    """Run the gallery and write the page."""
    warnings.simplefilter("ignore")
    os.environ.setdefault("GREENSCHED_DATA", str(DATA))
    gallery = {file.stem: _run(file) for file in sorted(GALLERY.glob("*.yaml"))}
    written = PAGE.read_text(encoding="utf-8").partition(MARKER)[0]
    PAGE.write_text(written + MARKER + "\n\n" + "\n".join(_lines(gallery)) + "\n", encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")


def _run(file: Path) -> Results:
    scenario = load_scenario(file)
    policies = policies_named("all", scenario.able)
    outcomes: dict[Policy, list[Outcome]] = {policy: [] for policy in policies}
    for done in compare(scenario, policies, SEEDS, lambda policy, seed: None):
        for policy, outcome in zip(policies, done.outcomes, strict=True):
            outcomes[policy].append(outcome)
        print(f"{file.stem}: seed {done.world.seed}", flush=True)
    return Results(
        policies,
        policy_named(BASELINE),
        SEEDS,
        {key: tuple(each) for key, each in outcomes.items()},
    )


def _lines(gallery: dict[str, Results]) -> Iterator[str]:
    yield (
        f"{len(SEEDS)} seeds ({SEEDS[0]} to {SEEDS[-1]}); {machine()['cpu']}, Python "
        f"{machine()['python']}. Changes are against `{BASELINE}`, paired by seed, ± half the 95 % "
        "interval (Student's t); bold where the whole interval is on the better side of zero, *in "
        "italics* where it is on the worse."
    )
    yield "\n## Carbon, over the gallery\n"
    yield "Each change with the missed deadlines, mean over seeds.\n"
    head: Row = ("policy", *gallery)
    yield from _markdown([head, *(_summary_row(policy, gallery) for policy in _shown(gallery))])
    for name, results in gallery.items():
        baseline = mean_outcome(results.outcomes[results.policies[0]])
        yield f"\n## {name}\n"
        yield (
            f"{count(baseline.jobs)} jobs, {count(baseline.deadlines)} of them with a deadline; "
            f"{short(kwh_from_joules(baseline.energy_j))} kWh under the baseline, "
            f"{100 * baseline.energy_idle_j / baseline.energy_j:.0f} % of it idle.\n"
        )
        yield from _markdown(_rows(results))
        for line in losses(results):
            yield f"\n- {line}" if not line.startswith("more slowdown") else ""


def _shown(gallery: dict[str, Results]) -> tuple[Policy, ...]:
    return tuple(dict.fromkeys(each for results in gallery.values() for each in results.policies))


def _summary_row(policy: Policy, gallery: dict[str, Results]) -> Row:
    cells = []
    for results in gallery.values():
        if policy not in results.policies:
            cells.append("–")  # its nodes never sleep, or its jobs never pause
            continue
        missed = f"{count(_mean(MISSED, results, policy))} missed"
        if policy == results.baseline:
            cells.append(f"baseline; {missed}")
        else:
            cells.append(f"{_change(CARBON, results, policy)}; {missed}")
    return (f"`{policy.label}`", *cells)


def _rows(results: Results) -> Iterator[Row]:
    yield ("policy", "missed", *(name for name, _ in _FIGURES), "wait, h")
    for policy in results.policies:
        missed = count(_mean(MISSED, results, policy))
        wait_h = short(_mean(WAIT, results, policy) / SECONDS_PER_HOUR)
        if policy == results.baseline:
            changes = ["baseline"] * len(_FIGURES)
        else:
            changes = [_change(figure, results, policy) for _, figure in _FIGURES]
        yield (f"`{policy.label}`", missed, *changes, wait_h)


def _change(figure: ComparedFigure, results: Results, policy: Policy) -> str:
    text, tone = change_cell(difference(figure, results, policy).percent)
    return {"better": f"**{text}**", "worse": f"*{text}*", "": text}[tone]


def _mean(figure: ComparedFigure, results: Results, policy: Policy) -> float:
    return float(np.mean([figure.of(outcome) for outcome in results.outcomes[policy]]))


def _markdown(rows: Iterator[Row] | list[Row]) -> Iterator[str]:
    for place, row in enumerate(rows):
        texts = [cell.text if isinstance(cell, Cell) else cell for cell in row]
        yield f"| {' | '.join(texts)} |"
        if place == 0:
            yield f"|{' --- |' * len(texts)}"


if __name__ == "__main__":
    main()
