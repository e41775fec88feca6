"""The tables of docs/run-folder.md: every column in a run's folder, from its definition."""

from collections.abc import Sequence

from greensched_simulator.results.recorded_columns import (
    ALWAYS,
    IN_WORDS,
    OF_SERVICES,
    OUTCOMES,
    RecordedTable,
)


def run_folder_tables() -> str:
    """Return a section for each table, with its files and its columns in their order."""
    sections = [_section(OUTCOMES, [f"{OUTCOMES.name}.csv"])]
    sections += [
        _section(table, [f"{table.name}.csv.gz", f"{table.name}.parquet"])
        for table in (*ALWAYS, *OF_SERVICES)
    ]
    return "\n\n".join(sections)


def _section(table: RecordedTable, files: Sequence[str]) -> str:
    names = " and ".join(f"`{name}`" for name in files)
    only = " The table is only written with services." if table in OF_SERVICES else ""
    head = ("column", "type", "unit", "meaning")
    rows = [
        (f"`{each.name}`", IN_WORDS[each.kind], each.unit, each.meaning) for each in table.columns
    ]
    lines = [f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *rows)]
    return "\n".join([f"## {names}", "", f"A row is {table.row}.{only}", "", *lines])
