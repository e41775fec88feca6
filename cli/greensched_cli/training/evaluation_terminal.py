"""Evaluations on a terminal: how far they are, and how a bundle compares with rules."""

import json
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from greensched_cli.interrupts import exit_status_of, terminated_as_interrupted
from greensched_cli.output import Output, print_document
from greensched_cli.terminal import TableRow, plain_console, print_table
from greensched_policies.learned.bundle import load_bundle
from greensched_policies.learned.heads import HEADS
from greensched_simulator.policy import BASELINE
from greensched_simulator.results.cells import Cell, change_cell
from greensched_train.checkpoints import write_whole
from greensched_train.data_split import TEST_SCENARIOS
from greensched_train.evaluation import (
    WorldOutcome,
    all_combinations,
    evaluated_worlds,
    scenario_files,
)
from greensched_train.evaluation_figures import (
    KUBERNETES,
    best_each,
    best_single,
    change_of,
    kept_by,
    mean_objective,
    paired_change,
    scenarios_of,
)
from greensched_train.evaluation_plot import draw_evaluation

EVALUATION_FILE, PLOT = "evaluation.json", "evaluation.png"
_FEW_WHERES = ("spread", "weighted-cost")
_SHOWN = 5  # of the rules that are cheapest


@dataclass(frozen=True, slots=True)
class EvaluationRequest:
    """The evaluation that the command line asks for."""

    bundle: Path
    scenarios: Path | None
    seeds: int
    every_where: bool
    out: Path | None
    processes: int | None
    output: Output


def evaluate_and_print(asked: EvaluationRequest) -> int:
    """Evaluate a bundle and print the tables; return the exit status.

    Raises BadInput for a bundle, scenarios and data that cannot be used.
    """
    load_bundle(asked.bundle, needs=tuple(HEADS))
    files = scenario_files(asked.scenarios or TEST_SCENARIOS)
    rules = all_combinations() if asked.every_where else all_combinations(_FEW_WHERES)
    learned = f"onnx:{asked.bundle}"
    policies = [learned, f"{learned}+full-speed", KUBERNETES, *rules]
    console = plain_console(to_stderr=asked.output != Output.TABLE)
    try:
        worlds = _evaluated(console, policies, files, asked)
    except KeyboardInterrupt as ended:
        console.print("interrupted: nothing was evaluated to its end")
        return exit_status_of(ended)
    if asked.output != Output.TABLE:
        print_document(_as_document(learned, rules, worlds), asked.output)
    else:
        _print(console, learned, rules, worlds)
    if asked.out is not None:
        _write(learned, rules, worlds, asked.out)
        console.print(f"\nwritten: {asked.out / EVALUATION_FILE} and {asked.out / PLOT}")
    return 0


def _evaluated(
    console: Console, policies: list[str], files: list[Path], asked: EvaluationRequest
) -> list[WorldOutcome]:
    """Run all, and show how far it is."""
    columns = TextColumn("scenarios and seeds"), BarColumn(), MofNCompleteColumn()
    with (
        terminated_as_interrupted(),
        Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as bar,
    ):
        task = bar.add_task("", total=len(files) * asked.seeds)
        return evaluated_worlds(
            policies, files, asked.seeds, lambda world: bar.advance(task), asked.processes
        )


def _print(console: Console, learned: str, rules: list[str], worlds: list[WorldOutcome]) -> None:
    single = best_single(rules, worlds)
    cheapest = sorted(rules, key=lambda rule: mean_objective(rule, worlds))[:_SHOWN]
    without = f"{learned}+full-speed"
    names = {learned: "the bundle", without: "the bundle without caps"}
    shown = dict.fromkeys([learned, without, single, *cheapest, KUBERNETES, BASELINE])
    title = f"scenarios: {len(scenarios_of(worlds))}, runs: {len(worlds)}; against {BASELINE}"
    rows = [policy_row(each, names.get(each, each), worlds) for each in shown]
    print_table(console, title, [_HEAD, *rows], texts=("eligible",))
    console.print(
        f"\nThe strongest of {len(rules)} combinations of rules that keep deadlines is {single}, "
        "chosen in hindsight.\n",
        soft_wrap=True,
    )
    print_table(console, "The bundle by scenario, J in %", scenario_rows(learned, rules, worlds))


def _write(learned: str, rules: list[str], worlds: list[WorldOutcome], folder: Path) -> None:
    """Write every figure, and the picture. Raises BadInput if they cannot be written."""
    folder.mkdir(parents=True, exist_ok=True)
    told = json.dumps(_as_document(learned, rules, worlds), indent=1)
    write_whole(folder / EVALUATION_FILE, told.encode())
    draw_evaluation(learned, best_single(rules, worlds), worlds, folder / PLOT)


_HEAD: TableRow = (
    "policy", "J", "cost", "carbon", "missed, load ≤ 0.8", "points beyond, above", "eligible",
)  # fmt: skip


def policy_row(policy: str, label: str, worlds: list[WorldOutcome]) -> TableRow:
    """Return a policy's row: its changes, and what its worst scenario misses."""
    cells, kept = list[Cell](), kept_by(policy, worlds)
    for name in ("cost_ratio", "cost", "carbon_g"):
        cells.append(change_cell(change_of(policy, BASELINE, worlds, attrgetter(name))))
    return (
        label, *cells, f"{kept.missed_pct:.2f} %", f"{kept.excess_points:.2f}",
        "yes" if kept.is_eligible else "no",
    )  # fmt: skip


def scenario_rows(learned: str, rules: list[str], worlds: list[WorldOutcome]) -> list[TableRow]:
    """Return the bundle's J in each scenario, against the strongest rules overall and there."""
    single, each = best_single(rules, worlds), best_each(rules, worlds)
    overall = paired_change(learned, single, worlds)
    rows: list[TableRow] = [("scenario", "load", f"against {single}", "best there", "against it")]
    for name, own in scenarios_of(worlds).items():
        there = paired_change(learned, each[name], own).whole
        here = change_cell(overall.by_scenario[name])
        rows.append((name, f"{own[0].load:.2g}", here, each[name], change_cell(there)))
    return rows


def _as_document(learned: str, rules: list[str], worlds: list[WorldOutcome]) -> dict[str, Any]:
    """Return what programs read: how the bundle compares, and each policy of each world."""
    single = best_single(rules, worlds)
    return {
        "bestSingle": single,
        "againstBestSinglePct": paired_change(learned, single, worlds).whole._asdict(),
        "missedPct": kept_by(learned, worlds).missed_pct,
        "excessPoints": kept_by(learned, worlds).excess_points,
        "worlds": [
            world._asdict()
            | {
                "policies": {
                    name: {
                        "costRatio": outcome.cost_ratio,
                        "missed": outcome.missed,
                        "cost": outcome.cost,
                        "carbonG": outcome.carbon_g,
                    }
                    for name, outcome in world.policies.items()
                }
            }
            for world in worlds
        ],
    }
