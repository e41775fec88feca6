"""`greensched scenario`: report the faults of scenario files, and print their schema.

Each verb imports the simulator when it runs, so that --help answers immediately.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from greensched_cli.extras import needs
from greensched_cli.output import AsOutput, Output, print_document
from greensched_cli.whole_summaries import WholeSummaries
from greensched_core.errors import BadInput

if TYPE_CHECKING:
    from greensched_simulator.formats.workload import Trace
    from greensched_simulator.scenario.model import Scenario
    from greensched_simulator.world.world import World

app = typer.Typer(
    cls=WholeSummaries, help="Check scenario files of the simulator.", no_args_is_help=True
)


@app.command()
@needs("simulator", "greensched scenario check")
def check(
    files: Annotated[list[Path], typer.Argument(help="Scenario files in YAML.")],
    output: AsOutput = Output.TABLE,
) -> None:
    """Print all faults of scenarios, by line, or their content; exit with 2 if one has a fault."""
    from greensched_simulator.world.scenario_loading import load_scenario
    from greensched_simulator.world.world import build_world

    documents = []
    for path in files:
        try:
            scenario = load_scenario(path)
            world, trace = build_world(scenario), _trace_of(scenario)
        except BadInput as fault:
            where = "" if str(path) in str(fault) else f"{path}: "
            print(f"greensched: {where}{fault}", file=sys.stderr)
            documents.append({"file": str(path), "isSound": False, "fault": str(fault)})
            continue
        documents.append(_document(path, world, trace))
        if output == Output.TABLE:
            for line in summary_lines(path, world, trace):
                print(line)
    if output != Output.TABLE:
        print_document(documents, output)
    if not all(each["isSound"] for each in documents):
        raise typer.Exit(2)


@app.command()
@needs("simulator", "greensched scenario schema")
def schema() -> None:
    """Print the JSON schema of scenario files, for editors and other tools."""
    from greensched_simulator.world.scenario_loading import schema_of_scenarios as scenario_schema

    print(json.dumps(scenario_schema(), indent=2))


def _trace_of(scenario: "Scenario") -> "Trace | None":
    from greensched_simulator.world.job_building import read_trace

    named = scenario.workload.trace
    return None if named is None else read_trace(named)


def _document(path: Path, world: "World", trace: "Trace | None") -> dict[str, Any]:
    from greensched_simulator.world.services import is_replica

    return {
        "file": str(path),
        "isSound": True,
        "name": world.name,
        "nodes": len(world.node_names),
        "zones": list(world.zones),
        "jobs": int((~is_replica(world.jobs)).sum()),
        "lengthSeconds": world.length_s,
        "seed": world.seed,
        "trace": trace
        and {"file": trace.source, "format": trace.format_name, "tasks": len(trace.tasks)},
        "notes": list(world.notes),
    }


def summary_lines(path: Path, world: "World", trace: "Trace | None") -> Iterator[str]:
    """Yield the content of a sound scenario, how its trace was read, and the notes on it."""
    from greensched_core.durations import format_duration
    from greensched_simulator.world.services import is_replica

    zones, jobs = ", ".join(world.zones), int((~is_replica(world.jobs)).sum())
    yield (
        f"{path}: ok. {world.name}: {len(world.node_names):,} nodes in "
        f"{len(world.zones)} {'zone' if len(world.zones) == 1 else 'zones'} ({zones}), "
        f"{jobs:,} jobs in {format_duration(world.length_s)} with seed {world.seed}"
    )
    if trace is not None:
        tasks = f"{len(trace.tasks):,} {'task' if len(trace.tasks) == 1 else 'tasks'}"
        yield f"  {Path(trace.source).name}: {trace.format_name}, {tasks}"
    for note in world.notes:
        yield f"  {note}"
