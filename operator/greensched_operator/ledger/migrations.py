"""Migrates the tables of a ledger to the newest schema, forward only.

Alembic is not used: it needs 5 MB and a folder of scripts with its own environment to run a list of
statements in order, which is easy to write for two tables. Each step is plain SQL that both SQLite
and PostgreSQL accept, and is never changed after its release.
"""

from collections.abc import Sequence

from sqlalchemy import Connection, inspect, text

from greensched_core.ledger_records import LossReason
from greensched_operator.ledger.faults import LedgerUnusable
from greensched_operator.ledger.tables import SCHEMA

MigrationStep = Sequence[str]
_FIRST: MigrationStep = (
    """
    CREATE TABLE records (
        id TEXT PRIMARY KEY, what TEXT NOT NULL, at DOUBLE PRECISION NOT NULL,
        is_shadow BOOLEAN NOT NULL, occurrence TEXT, kind TEXT NOT NULL, namespace TEXT NOT NULL,
        name TEXT NOT NULL, uid TEXT, owner TEXT, cpu_cores DOUBLE PRECISION,
        memory_bytes DOUBLE PRECISION, gpus DOUBLE PRECISION, policy TEXT, mode TEXT, reason TEXT,
        zone TEXT, input_ages TEXT, forecast_source TEXT, forecast_observed_at DOUBLE PRECISION,
        forecast_digest TEXT, planned_start DOUBLE PRECISION, hold_until DOUBLE PRECISION,
        deadline DOUBLE PRECISION, run_now_start DOUBLE PRECISION,
        expected_runtime_s DOUBLE PRECISION, measured_runtime_s DOUBLE PRECISION,
        planned_energy_j DOUBLE PRECISION, planned_carbon_g DOUBLE PRECISION,
        planned_cost DOUBLE PRECISION, run_now_energy_j DOUBLE PRECISION,
        run_now_carbon_g DOUBLE PRECISION, run_now_cost DOUBLE PRECISION,
        measured_energy_j DOUBLE PRECISION, measured_carbon_g DOUBLE PRECISION,
        measured_cost DOUBLE PRECISION, currency TEXT, node TEXT, decision TEXT
    )
    """,
    "CREATE INDEX records_by_time ON records (at, id)",
    "CREATE INDEX records_by_namespace ON records (namespace, at, id)",
    """
    CREATE TABLE losses (
        id TEXT PRIMARY KEY, reason TEXT NOT NULL, since DOUBLE PRECISION NOT NULL,
        until DOUBLE PRECISION NOT NULL, records INTEGER
    )
    """,
)
_METER: MigrationStep = ("ALTER TABLE records ADD COLUMN meter TEXT",)
_LATEST_START: MigrationStep = ("ALTER TABLE records RENAME COLUMN hold_until TO latest_start",)
STEPS: Sequence[MigrationStep] = (_FIRST, _METER, _LATEST_START)
FORMER_NAMES = {"latest_start": "hold_until"}  # of columns that a step renames
_LOCK = 0x67726E73  # an arbitrary number that no other program uses


def migrate(connection: Connection, steps: Sequence[MigrationStep] = STEPS) -> int:
    """Run the missing steps in the caller's transaction; return the version.

    Raises LedgerUnusable if the tables are of a later version than ours.
    """
    if connection.dialect.name == "postgresql":  # another replica may be migrating as well
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
    version = _version(connection)
    if version > len(steps):
        raise LedgerUnusable(
            LossReason.NEWER_SCHEMA,
            f"the ledger has schema {version}, but this release knows only up to {len(steps)}: "
            "run a newer release, or set another ledger",
        )
    for step in steps[version:]:
        for statement in step:
            connection.execute(text(statement))
    if version < len(steps):
        connection.execute(SCHEMA.delete())
        connection.execute(SCHEMA.insert().values(version=len(steps)))
    return len(steps)


def _version(connection: Connection) -> int:
    if not inspect(connection).has_table(SCHEMA.name):
        SCHEMA.create(connection)
    return connection.execute(SCHEMA.select()).scalar() or 0
