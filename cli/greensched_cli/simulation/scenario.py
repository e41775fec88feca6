"""`greensched scenario`: say what is wrong with scenario files, and what they may hold.

The simulator is imported where a verb runs, so that --help answers at once.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from greensched_cli.extras import needs
from greensched_core.errors import BadInput

if TYPE_CHECKING:
    from greensched_simulator.world.world import World

app = typer.Typer(help="Check scenario files of the simulator.", no_args_is_help=True)


@app.command()
@needs("simulator", "greensched scenario check")
def check(files: Annotated[list[Path], typer.Argument(help="Scenario files in YAML.")]) -> None:
    """Print all faults of scenarios, by line, or what is in them; exit with 2 if there is one."""
    from greensched_simulator.world.scenario_loading import load_scenario
    from greensched_simulator.world.world import build_world

    is_sound = True
    for path in files:
        try:
            world = build_world(load_scenario(path))
        except BadInput as fault:
            where = "" if str(path) in str(fault) else f"{path}: "
            print(f"greensched: {where}{fault}", file=sys.stderr)
            is_sound = False
        else:
            for line in summary_lines(path, world):
                print(line)
    if not is_sound:
        raise typer.Exit(2)


@app.command()
@needs("simulator", "greensched scenario schema")
def schema() -> None:
    """Print the JSON schema of scenario files, for editors and other tools."""
    from greensched_simulator.world.scenario_loading import schema as scenario_schema

    print(json.dumps(scenario_schema(), indent=2))


def summary_lines(path: Path, world: "World") -> Iterator[str]:
    """Yield what a sound scenario holds, and what should be known about it."""
    from greensched_core.durations import format_duration
    from greensched_simulator.world.services import is_replica

    zones, jobs = ", ".join(world.zones), int((~is_replica(world.jobs)).sum())
    yield (
        f"{path}: ok. {world.name}: {len(world.node_names):,} nodes in "
        f"{len(world.zones)} {'zone' if len(world.zones) == 1 else 'zones'} ({zones}), "
        f"{jobs:,} jobs in {format_duration(world.length_s)} with seed {world.seed}"
    )
    for note in world.notes:
        yield f"  {note}"
