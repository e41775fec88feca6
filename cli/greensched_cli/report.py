"""`greensched report`: the savings in a cluster's ledger, or the report of a simulated run.

No other module knows both: what reads a ledger runs no simulation.
"""

from pathlib import Path
from typing import Annotated

import typer

from greensched_cli.explain.decisions import Context, InstallNamespace, Kubeconfig
from greensched_cli.extras import require
from greensched_cli.ledger.report import show_ledger
from greensched_cli.ledger.source import LedgerSpan
from greensched_cli.output import AsOutput, Output
from greensched_cli.reading.api_server import usual_namespace
from greensched_cli.reading.replicas import Whereabouts
from greensched_cli.simulation import simulate
from greensched_core.clock import WallClock
from greensched_core.durations import parse_duration
from greensched_core.errors import BadInput

RunFolder = Annotated[
    Path | None, typer.Argument(help="Folder of a simulated run: draw its report again.")
]
Since = Annotated[str, typer.Option(help="How far back to read the ledger, such as 7d or 36h.")]
Ledger = Annotated[
    str | None,
    typer.Option(
        envvar="GREENSCHED_LEDGER",
        help="Ledger to read: an SQLite file, postgresql://…, or http://host:port of a "
        "port-forward. By default the cluster's operators are asked through port-forwards.",
    ),
]
OnlyNamespace = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        "-n",
        help="Count only work of this namespace; by default the context's, and with --ledger all.",
    ),
]
AllNamespaces = Annotated[
    bool, typer.Option("--all-namespaces", "-A", help="Count the work of all namespaces.")
]
Out = Annotated[
    Path | None, typer.Option(help="Folder for report.html and the records as Parquet and CSV.")
]


def report(
    folder: RunFolder = None,
    since: Since = "7d",
    ledger: Ledger = None,
    namespace: OnlyNamespace = None,
    all_namespaces: AllNamespaces = False,
    out: Out = None,
    output: AsOutput = Output.TABLE,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    install_namespace: InstallNamespace = None,
) -> None:
    """Show what holding work saved against starting it immediately, from the ledger."""
    if namespace and all_namespaces:
        raise BadInput("-n names one namespace and -A means all: leave one of them out")
    if folder is not None:
        if namespace or all_namespaces:
            raise BadInput("FOLDER is a simulated run, not a ledger: leave -n and -A out")
        simulate.report(folder, output)
        return
    if out is not None:
        require("report", "--out")
    until = WallClock().now()
    if ledger is None and not all_namespaces:  # no other source has a context
        namespace = namespace or usual_namespace(kubeconfig, context)
    span = LedgerSpan(until - _seconds(since), until, namespace)
    where = Whereabouts(None, kubeconfig, context, install_namespace, None)
    show_ledger(ledger, where, span, out, output)


def _seconds(since: str) -> float:
    try:
        seconds = parse_duration(since)
    except BadInput as fault:
        raise BadInput(f"--since: {fault}") from fault
    if seconds <= 0:
        raise BadInput(f"--since must be above zero, not {since}")
    return seconds
