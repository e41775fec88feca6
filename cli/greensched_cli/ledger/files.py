"""Writes a ledger's records as Parquet and CSV, with the same rows and columns in both."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from greensched_core.ledger_records import LedgerRecord, flat
from greensched_operator.ledger.tables import COLUMNS

_TYPES = {"Text": pa.string(), "Double": pa.float64(), "Boolean": pa.bool_()}


def file_schema() -> pa.Schema:
    """Return the columns of both files; docs/ledger.md explains them."""
    return pa.schema(
        [
            pa.field(name, _TYPES[about.type.__name__], metadata={"meaning": about.meaning})
            for name, about in COLUMNS.items()
        ]
    )


def write_files(folder: Path, records: Sequence[LedgerRecord]) -> list[Path]:
    """Write ledger.parquet and ledger.csv; return their paths. Raises OSError."""
    rows = pa.Table.from_pylist([flat(record) for record in records], schema=file_schema())
    parquet, csv = folder / "ledger.parquet", folder / "ledger.csv"
    pyarrow.parquet.write_table(rows, parquet, compression="zstd")
    pyarrow.csv.write_csv(rows, csv)
    return [parquet, csv]
