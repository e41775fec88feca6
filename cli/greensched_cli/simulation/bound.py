"""`greensched bound`: the least that a scenario's work can cost, and how close policies come.

The verb imports the simulator when it runs, so that --help answers immediately.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from greensched_cli.extras import needs
from greensched_cli.output import AsOutput, Output, print_document
from greensched_cli.simulation.seeds import Seed, require_seed
from greensched_core.durations import parse_duration
from greensched_core.errors import BadInput

if TYPE_CHECKING:
    from greensched_simulator.results.bound_report import Bounded
    from greensched_simulator.world.world import World

_SHORTEST_SLOT_S = 60.0
POLICIES = "run-now+spread, least-carbon, carbon-time, planned-window"


@needs("simulator", "greensched bound")
def bound(
    scenario: Annotated[Path, typer.Argument(help="Scenario file in YAML (docs/scenarios.md).")],
    policies: Annotated[
        str, typer.Option(help="Policies to compare with the bound; the first is the baseline.")
    ] = POLICIES,
    seed: Seed = None,
    slot: Annotated[
        str, typer.Option(help="Length of a time slot; shorter gives a tighter bound.")
    ] = "1h",
    preempt: Annotated[
        bool, typer.Option("--preempt", help="Let jobs stop and resume at no cost.")
    ] = False,
    output: AsOutput = Output.TABLE,
) -> None:
    """Compute the least energy, carbon and cost that any schedule could reach."""
    from greensched_cli.simulation.compiling import compiling_shown
    from greensched_cli.terminal import plain_console
    from greensched_simulator.policy import policies_named
    from greensched_simulator.results.bound_report import bounded
    from greensched_simulator.world.scenario_loading import load_scenario
    from greensched_simulator.world.world import build_world

    policies_named(policies)  # report a misspelt name before reading a large trace
    require_seed(seed)
    slot_s = _slot_s(slot)
    began = time.monotonic()
    loaded = load_scenario(scenario)
    chosen = policies_named(policies, loaded.able)
    world = build_world(loaded, seed)
    with compiling_shown(plain_console(to_stderr=output != Output.TABLE)):
        found = bounded(world, chosen, slot_s, preempt=preempt)
    if output != Output.TABLE:
        print_document(_document(world, found), output)
        return
    replicas = sum(service.rows.size for service in world.services)
    lives = f", {replicas:,} lives of replicas" if replicas else ""
    jobs = len(world.job_names) - replicas
    print(f"{world.name}, seed {world.seed}: {jobs:,} job{'' if jobs == 1 else 's'}{lives}")
    for line in _lines(found):
        print(line)
    print(f"took {time.monotonic() - began:.1f} s")


def _slot_s(text: str) -> float:
    try:
        slot_s = parse_duration(text)
    except BadInput as fault:
        raise BadInput(f"--slot: {fault}") from fault
    if slot_s < _SHORTEST_SLOT_S:
        raise BadInput(f"--slot must be at least a minute, not {text}")
    return slot_s


def _document(world: "World", found: "Bounded") -> dict[str, Any]:
    """Return all figures as JSON values; null if a figure does not apply."""
    freedom = found.limits.freedom
    return {
        "scenario": world.name,
        "seed": world.seed,
        "billedSeconds": found.billed_s,
        "boundMaySuspend": freedom.suspend,
        "boundMayCap": freedom.cap,
        "nodesFail": found.fails,
        "replicaLivesPercent": found.lives_pct,
        "figures": [
            {
                "name": figure.name,
                "unit": figure.unit,
                "bound": figure.bound,
                "idle": figure.idle,
                "policies": [
                    {
                        "policy": run.policy,
                        "total": run.total,
                        "abovePercent": run.gap_pct,
                        "capturedPercent": run.captured_pct,
                        "deadlinesMissed": run.missed,
                    }
                    for run in figure.runs
                ],
            }
            for figure in found.figures
        ],
    }


def _lines(found: "Bounded") -> Iterator[str]:
    yield f"billed for {found.billed_s / 3600.0:.1f} h; each job may end as late as its deadline,"
    yield "or as late as the latest policy below ends it"
    if found.limits.freedom.cap:
        yield "a policy below caps nodes: the bound lets work run at any cap, and stop at no cost"
    elif found.limits.freedom.suspend:
        yield "a policy below suspends jobs: the bound lets all work stop and resume at no cost"
    if found.fails:
        yield "nodes fail: the bound loses no work, and nodes draw nothing while they may be away"
    if found.lives_pct is not None:
        yield "the bound counts a replica only while it runs under all policies below:"
        yield f"for {found.lives_pct:.1f} % of their lives"
    if found.limits.never_ran.any():
        yield "a policy below rejects work: the bound may leave that work undone, at its charge"
    width = max(len(run.policy) for figure in found.figures for run in figure.runs)
    for figure in found.figures:
        yield ""
        yield (
            f"{figure.name}: at least {figure.bound:,.2f} {figure.unit}, of which "
            f"{figure.idle:,.2f} idle or asleep ({figure.variables:,} variables)"
        )
        for run in figure.runs:
            gap = "" if run.gap_pct is None else f" {max(run.gap_pct, 0.0):6.1f} % above"
            yield (
                f"  {run.policy:{width}} {run.total:12,.2f} {figure.unit:4}{gap}"
                + ("" if run.captured_pct is None else f", {run.captured_pct:5.1f} % captured")
                + (f", {run.missed:,} deadlines missed" if run.missed else "")
            )
    yield ""
    yield "captured: the share of the saving from the first policy to the bound; 100 % can be out"
    yield "of reach, because perhaps no schedule reaches the bound (docs/simulator.md)"
