"""The `greensched` command: wires the verbs, and prints each of our errors as one line."""

import shutil
import sys
from importlib.metadata import version
from typing import Annotated, Literal

import typer

from greensched_cli import policy, report
from greensched_cli.explain import decisions
from greensched_cli.extras import extra_with
from greensched_cli.release import release
from greensched_cli.simulation import bound, reproduce, scenario, simulate
from greensched_cli.status import status
from greensched_cli.testbed import benchmark, cluster, demo, replay
from greensched_cli.training import evaluate, train
from greensched_cli.whole_summaries import WholeSummaries
from greensched_core.errors import ApiUnavailable, GreenSchedError

_FRAMED_COLUMNS = 100  # in a narrower frame the names of options are cut off


def _help_style() -> Literal["markdown"] | None:
    """Return framed help for wide terminals and for the list of verbs, else plain lines."""
    is_list = all(each.startswith("-") for each in sys.argv[1:])
    is_wide = shutil.get_terminal_size().columns >= _FRAMED_COLUMNS
    return "markdown" if is_wide or is_list else None


app = typer.Typer(
    cls=WholeSummaries, no_args_is_help=True, pretty_exceptions_enable=False,
    rich_markup_mode=_help_style(),
)  # fmt: skip


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        print(f"greensched {version('greensched')}")
        raise typer.Exit


@app.callback()
def root(
    is_version_wanted: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Run Kubernetes work where it costs the least energy, money and carbon."""


app.command("benchmark")(benchmark.benchmark)
app.command("compare")(simulate.compare)
app.command("bound")(bound.bound)
app.command("demo")(demo.demo)
app.command("evaluate")(evaluate.evaluate)
app.command("explain")(decisions.explain)
app.command("nodes")(decisions.nodes)
app.command("release")(release.release)
app.command("replay")(replay.replay)
app.command("reproduce")(reproduce.reproduce)
app.command("report")(report.report)
app.command("simulate")(simulate.simulate)
app.command("status")(status.status)
app.command("train")(train.train)
app.add_typer(cluster.app, name="cluster")
app.add_typer(policy.app, name="policy")
app.add_typer(scenario.app, name="scenario")


def main() -> None:
    """Run the command line; exit with 2 on bad input and 1 on any other error of ours."""
    try:
        app()
    except ApiUnavailable as fault:
        print(f"greensched: {fault}", file=sys.stderr)
        sys.exit(1)
    except GreenSchedError as fault:
        cause = fault.__cause__
        more = f": {_command_for(cause)}" if isinstance(cause, ModuleNotFoundError) else ""
        print(f"greensched: {fault}{more}", file=sys.stderr)
        sys.exit(2)
    except ModuleNotFoundError as fault:
        if (fault.name or "").startswith("greensched"):
            raise
        print(f"greensched: {fault.name} is missing: {_command_for(fault)}", file=sys.stderr)
        sys.exit(2)


def _command_for(missing: ModuleNotFoundError) -> str:
    from greensched_cli.installation import install_command

    return install_command(extra_with(missing.name or ""))


if __name__ == "__main__":
    main()
