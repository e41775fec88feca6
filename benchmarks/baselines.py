"""`make baselines`: every policy on every scenario of the gallery, into docs/baselines.md.

The default GreenPolicy is one of them.

The text above the page's marker stays; the tables below it are rewritten.
"""

import argparse
import os
import warnings
from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.bench_cluster import machine
from benchmarks.command_line import DEFAULT_POLICY, ROOT, parse, result_file
from greensched_core.units import SECONDS_PER_HOUR, kwh_from_joules
from greensched_simulator.policy import BASELINE, Policy, policies_named, policy_named
from greensched_simulator.results.cells import Cell, ResultRow, count, short
from greensched_simulator.results.comparison import (
    CARBON,
    COST,
    ENERGY,
    MISSED,
    WAIT,
    ComparedFigure,
    Results,
    compare,
    mean_outcome,
)
from greensched_simulator.results.tables import changed_cell, losses
from greensched_simulator.runs.outcome import Outcome
from greensched_simulator.scenario.model import Scenario
from greensched_simulator.world.scenario_loading import load_scenario

PAGE = ROOT / "docs/baselines.md"
MARKER = "<!-- Written by `make baselines` from here on; changes by hand are lost. -->"
GALLERY = ROOT / "examples/scenarios"
SEEDS = 10
_SMALLEST = {"scenarios": ["hydro-and-coal"], "policies": f"{BASELINE},planned-window", "seeds": 2}
DATA = ROOT.parent / "shared" / "data"
_FIGURES = (("energy", ENERGY), ("cost", COST), ("carbon", CARBON))


def main() -> None:
    """Run the gallery, with `--smallest` one scenario of it, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.set_defaults(
        scenarios=sorted(file.stem for file in GALLERY.glob("*.yaml")), policies="all", seeds=SEEDS
    )
    given = parse(parser, _SMALLEST)
    warnings.simplefilter("ignore")
    os.environ.setdefault("GREENSCHED_DATA", str(DATA))
    gallery = {name: _run(name, given.policies, given.seeds) for name in given.scenarios}
    written = PAGE.read_text(encoding="utf-8").partition(MARKER)[0]
    page = result_file("baselines", given, ".md") if given.smallest else PAGE
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(written + MARKER + "\n\n" + "\n".join(_lines(gallery)) + "\n", encoding="utf-8")
    print(f"written to {page.relative_to(ROOT)}")


def _run(name: str, named: str, seed_count: int) -> Results:
    scenario = load_scenario(GALLERY / f"{name}.yaml").model_copy(
        update={"green_policy": DEFAULT_POLICY}
    )
    return results_of(name, scenario, policies_named(named, scenario.able), seed_count)


def results_of(
    name: str, scenario: Scenario, policies: Sequence[Policy], seed_count: int
) -> Results:
    """Return the outcomes of all runs, against the usual baseline; print the name at each seed."""
    seeds = tuple(range(1, seed_count + 1))
    outcomes: dict[Policy, list[Outcome]] = {policy: [] for policy in policies}
    for done in compare(scenario, policies, seeds, lambda policy, seed: None):
        for policy, outcome in zip(policies, done.outcomes, strict=True):
            outcomes[policy].append(outcome)
        print(f"{name}: seed {done.world.seed}", flush=True)
    return Results(
        tuple(policies),
        policy_named(BASELINE),
        seeds,
        {key: tuple(each) for key, each in outcomes.items()},
    )


def _lines(gallery: dict[str, Results]) -> Iterator[str]:
    seeds = next(iter(gallery.values())).seeds
    yield (
        f"{len(seeds)} seeds ({seeds[0]} to {seeds[-1]}); {machine()['cpu']}, Python "
        f"{machine()['python']}. Changes are against `{BASELINE}`, paired by seed, ± half the 95 % "
        "interval (Student's t); bold where the whole interval is on the better side of zero and "
        "no work was left undone, *in italics* where it is on the worse side."
    )
    yield "\n## Carbon, over the gallery\n"
    yield "Each change with the missed deadlines, mean over seeds.\n"
    head: ResultRow = ("policy", *gallery)
    yield from _markdown([head, *(_summary_row(policy, gallery) for policy in _shown(gallery))])
    for name, results in gallery.items():
        baseline = mean_outcome(results.outcomes[results.policies[0]])
        jobs, deadlines = round(baseline.jobs), round(baseline.deadlines)
        yield f"\n## {name}\n"
        yield (
            f"{count(jobs)} jobs, {count(deadlines)} of them with a deadline; "
            f"{short(kwh_from_joules(baseline.energy_j))} kWh under the baseline, "
            f"{100 * baseline.energy_idle_j / baseline.energy_j:.0f} % of it idle.\n"
        )
        yield from _markdown(_rows(results))
        for line in losses(results):
            yield f"\n- {line}" if not line.startswith("more slowdown") else ""


def _shown(gallery: dict[str, Results]) -> tuple[Policy, ...]:
    return tuple(dict.fromkeys(each for results in gallery.values() for each in results.policies))


def _summary_row(policy: Policy, gallery: dict[str, Results]) -> ResultRow:
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


def _rows(results: Results) -> Iterator[ResultRow]:
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
    text, tone = changed_cell(figure, results, policy)
    return {"better": f"**{text}**", "worse": f"*{text}*", "": text}[tone]


def _mean(figure: ComparedFigure, results: Results, policy: Policy) -> float:
    return float(np.mean([figure.of(outcome) for outcome in results.outcomes[policy]]))


def _markdown(rows: Iterator[ResultRow] | list[ResultRow]) -> Iterator[str]:
    for place, row in enumerate(rows):
        texts = [cell.text if isinstance(cell, Cell) else cell for cell in row]
        yield f"| {' | '.join(texts)} |"
        if place == 0:
            yield f"|{' --- |' * len(texts)}"


if __name__ == "__main__":
    main()
