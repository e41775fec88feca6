"""The `greensched` command: wires the verbs, and turns our errors into one clear line."""

import sys

import typer

from greensched_cli import cluster, decisions, demo, policy, replay
from greensched_core.errors import ApiUnavailable, GreenSchedError

app = typer.Typer(
    help="Kubernetes work where it costs the least energy, money and carbon.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command("demo")(demo.demo)
app.command("explain")(decisions.explain)
app.command("nodes")(decisions.nodes)
app.command("replay")(replay.replay)
app.add_typer(cluster.app, name="cluster")
app.add_typer(policy.app, name="policy")


def main() -> None:
    """Run the command line; exit with 2 on bad input and 1 on any other error of ours."""
    try:
        app()
    except ApiUnavailable as fault:
        print(f"greensched: {fault}", file=sys.stderr)
        sys.exit(1)
    except GreenSchedError as fault:
        print(f"greensched: {fault}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
