"""`greensched simulate`, `compare` and `report`: runs of a scenario, and their reports.

Each verb imports the simulator when it runs, so that --help answers immediately, and after cheap
checks of its options.
"""

import sys
from pathlib import Path
from typing import Annotated

import typer

from greensched_cli.extras import needs
from greensched_cli.output import AsOutput, Output, print_document
from greensched_cli.simulation.seeds import LARGEST_SEED, Seed, require_seed
from greensched_core.errors import BadInput

_POLICY = (
    "Rules joined by + (WHEN+WHERE+QUEUE+SLEEP+CAP+PAUSE, or some of them), such as "
    "carbon-time+least-carbon, or one of the presets min-min, max-min, ecsched, tetris-srtf, "
    "sleep-only, cap-only, wait-awhile, ecovisor, carbon-scaler. `greensched policy list` prints "
    "all names. onnx:FOLDER is a learned bundle, in place of the rules that are not named."
)

ScenarioFile = Annotated[Path, typer.Argument(help="Scenario file in YAML (docs/scenarios.md).")]
Out = Annotated[
    Path | None,
    typer.Option(
        help="Folder for the report, all rows, and the figures as JSON and CSV; by default "
        "build/runs/SCENARIO-…-TIME."
    ),
]
Policies = Annotated[
    str, typer.Option(help="`all`, or policies as of `simulate`, separated by commas.")
]
Seeds = Annotated[int, typer.Option(help="Number of seeds, starting at the scenario's.")]
Baseline = Annotated[
    str | None, typer.Option(help="Policy to compare with; by default run-now+spread.")
]
Levers = Annotated[
    bool,
    typer.Option(help="Also run the combinations that show what each lever (when, where …) adds."),
]
Bound = Annotated[
    bool,
    typer.Option(
        help="Also compute the bound and each policy's share of it; minutes for 1,000s of jobs."
    ),
]


@needs("simulator", "greensched simulate")
def simulate(
    scenario: ScenarioFile,
    policy: Annotated[str, typer.Option(help=_POLICY)],
    seed: Seed = None,
    out: Out = None,
    output: AsOutput = Output.TABLE,
) -> None:
    """Run a scenario under one policy; write figures, all rows, and a report with plots."""
    from greensched_simulator.policy import policy_named
    from greensched_simulator.world.scenario_loading import load_scenario

    chosen = policy_named(policy)
    require_seed(seed)
    from greensched_cli.simulation.simulation_terminal import SimulationRequest, run_and_print

    asked = SimulationRequest(
        load_scenario(scenario), scenario, (chosen,), None, seed, 1, out, chosen.name,
        output,
    )  # fmt: skip
    raise typer.Exit(run_and_print(asked))


@needs("simulator", "greensched compare")
def compare(
    scenario: ScenarioFile,
    policies: Policies = "all",
    seeds: Seeds = 10,
    baseline: Baseline = None,
    levers: Levers = False,
    bound: Bound = False,
    out: Out = None,
    output: AsOutput = Output.TABLE,
) -> None:
    """Run a scenario under several policies and seeds, and compare each with a baseline."""
    from greensched_simulator.policy import BASELINE, policies_named, policy_named
    from greensched_simulator.world.scenario_loading import load_scenario

    against = policy_named(BASELINE if baseline is None else baseline)
    policies_named(policies)  # report a misspelt name before reading a large trace
    if seeds < 1:
        raise BadInput(f"--seeds must be at least 1, not {seeds}")
    loaded = load_scenario(scenario)
    if loaded.seed > LARGEST_SEED + 1 - seeds:
        raise BadInput(
            f"--seeds {seeds}, starting at the scenario's seed {loaded.seed}, exceed "
            f"{LARGEST_SEED}: give the scenario a smaller seed"
        )
    named = policies_named(policies, loaded.able)
    chosen = tuple(dict.fromkeys((against, *named)))
    if levers:
        from greensched_simulator.results.levers import with_combinations

        chosen = with_combinations(chosen, against)
    from greensched_cli.simulation.simulation_terminal import SimulationRequest, run_and_print

    asked = SimulationRequest(
        loaded, scenario, chosen, against, None, seeds, out, "compare", output,
        with_bound=bound,
    )  # fmt: skip
    raise typer.Exit(run_and_print(asked))


@needs("simulator", "The report of a simulated run")
def report(
    folder: Annotated[Path, typer.Argument(help="Folder of a run.")],
    output: AsOutput = Output.TABLE,
) -> None:
    """Draw the report of a run again, using only its folder; print its figures if asked."""
    from greensched_cli.terminal import plain_console
    from greensched_simulator.reports.report import write_run_report
    from greensched_simulator.results.run_folder import read_run

    run = read_run(folder)
    try:
        plain_console(to_stderr=output != Output.TABLE).print(
            f"report: {write_run_report(run)}", soft_wrap=True
        )
    except OSError as fault:  # such as a full disk
        print(f"greensched: {fault}", file=sys.stderr)
        raise typer.Exit(1) from fault
    if output != Output.TABLE:
        print_document(run.document(), output)
