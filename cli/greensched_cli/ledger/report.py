"""`greensched report`: the savings in a cluster's ledger, or the report of a simulated run.

The verb imports the drawing code when it runs, so that --help answers immediately.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from greensched_cli.explain.decisions import Context, InstallNamespace, Kubeconfig
from greensched_cli.extras import require
from greensched_cli.ledger.source import LedgerSpan, ReadLedger, read_ledger
from greensched_cli.output import AsOutput, Output, print_document
from greensched_cli.reading.api_server import usual_namespace
from greensched_cli.reading.replicas import Whereabouts
from greensched_cli.simulation import simulate
from greensched_core.clock import WallClock
from greensched_core.durations import parse_duration
from greensched_core.errors import BadInput

if TYPE_CHECKING:
    from greensched_cli.ledger.tables import LedgerReport


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
    read = read_ledger(ledger, where, span)
    from greensched_cli.ledger.tables import report_of

    drawn = report_of(read, span)
    if output == Output.TABLE:
        _print(drawn, read)
    else:
        from greensched_cli.ledger.json_output import report_json

        print_document(report_json(drawn), output)
    if out is not None:
        _write(out, drawn, read)


def _seconds(since: str) -> float:
    try:
        seconds = parse_duration(since)
    except BadInput as fault:
        raise BadInput(f"--since: {fault}") from fault
    if seconds <= 0:
        raise BadInput(f"--since must be above zero, not {since}")
    return seconds


def _print(report: "LedgerReport", read: ReadLedger) -> None:
    from greensched_cli.ledger import tables
    from greensched_cli.terminal import plain_console, print_table

    console = plain_console()
    for note in report.notes:
        print(note, file=sys.stderr)
    if not read.records and not read.losses:
        hint = "; -A counts all namespaces" if report.span.namespace else ""
        console.print(f"{report.source}: no decision in this period{tables.place_of(report)}{hint}")
        return
    for title, savings in (
        ("Work that was started", report.done),
        ("What shadow mode would have saved", report.shadow),
    ):
        if savings.outcomes:
            print_table(console, title + tables.place_of(report), tables.saved_rows(savings.whole))
            console.print()
            print_table(console, "By namespace", tables.namespace_rows(savings))
            console.print()
    if measured := tables.measured_rows(report.done.outcomes):
        print_table(console, "Measured and estimated", measured)
        console.print()
    print_table(console, "What was decided", [("", ""), *tables.decided_rows(report)])
    console.print()
    for line in tables.losses_of(report.done):
        console.print(f"lost: {line}")
    console.print(tables.HOW_CERTAIN)


def _write(out: Path, report: "LedgerReport", read: ReadLedger) -> None:
    from greensched_cli.ledger.files import write_files
    from greensched_cli.ledger.page import write_page

    try:
        out.mkdir(parents=True, exist_ok=True)
        page = out / "report.html"
        write_page(page, report)
        files = write_files(out, read.records)
    except OSError as fault:  # such as a full disk
        print(f"greensched: {fault}", file=sys.stderr)
        raise typer.Exit(1) from fault
    # To stderr, so that stdout stays valid JSON.
    print(f"report: {page}\nrecords: {', '.join(map(str, files))}", file=sys.stderr)
