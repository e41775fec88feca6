"""Prints what a ledger says was saved, and writes it as a page and tables.

The drawing code is imported when it runs, so that --help answers immediately.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from greensched_cli.ledger.source import LedgerSpan, ReadLedger, read_ledger
from greensched_cli.output import Output, print_document
from greensched_cli.reading.replicas import Whereabouts

if TYPE_CHECKING:
    from greensched_cli.ledger.tables import LedgerReport


def show_ledger(
    ledger: str | None, where: Whereabouts, span: LedgerSpan, out: Path | None, output: Output
) -> None:
    """Print the savings in a span of a ledger; write page and records into a folder, if given.

    Raises what `read_ledger` raises.
    """
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


def _print(report: "LedgerReport", read: ReadLedger) -> None:
    from greensched_cli.ledger import tables
    from greensched_cli.terminal import plain_console, print_table

    console = plain_console()
    for note in report.notes:
        print(note, file=sys.stderr)
    if not read.records and not read.losses:
        hint = "; -A counts all namespaces" if report.span.namespace else ""
        console.print(
            f"{report.source}: no decision in this period{tables.in_namespace(report)}{hint}"
        )
        return
    for title, savings in (
        ("Work that was started", report.done),
        ("What shadow mode would have saved", report.shadow),
    ):
        if savings.outcomes:
            print_table(
                console, title + tables.in_namespace(report), tables.saved_rows(savings.whole)
            )
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
