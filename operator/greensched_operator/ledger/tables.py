"""The ledger's tables as the newest schema has them; `migrations.py` makes them."""

from dataclasses import dataclass

from sqlalchemy import Boolean, Column, Double, Integer, MetaData, Table, Text

from greensched_core.power.meters.catalogue import ESTIMATING, POD_METERS

METADATA = MetaData()
_MEASURING = [meter.name for meter in POD_METERS if not meter.is_estimate]
_ESTIMATES = ", ".join(sorted(ESTIMATING))


@dataclass(frozen=True, slots=True)
class LedgerColumn:
    """A column of the records: its type, and what a reader of tables should know of it."""

    type: type[Text] | type[Double[float]] | type[Boolean]
    meaning: str


# In the order of exports.
COLUMNS: dict[str, LedgerColumn] = {
    "id": LedgerColumn(Text, "identical each time the same decision is reported"),
    "what": LedgerColumn(Text, "held, planned, released, paused, resumed, placed, ended"),
    "at": LedgerColumn(Double, "when, seconds since the epoch"),
    "is_shadow": LedgerColumn(Boolean, "true in mode shadow: only what would have been done"),
    "occurrence": LedgerColumn(Text, "distinguishes records of one kind on the same workload"),
    "kind": LedgerColumn(Text, "of the workload: Job, Pod"),
    "namespace": LedgerColumn(Text, "of the workload"),
    "name": LedgerColumn(Text, "of the workload"),
    "uid": LedgerColumn(Text, "of the workload"),
    "owner": LedgerColumn(Text, "kind/name of what made the workload"),
    "cpu_cores": LedgerColumn(Double, "asked for"),
    "memory_bytes": LedgerColumn(Double, "asked for"),
    "gpus": LedgerColumn(Double, "asked for"),
    "policy": LedgerColumn(Text, "name of the policy"),
    "mode": LedgerColumn(Text, "off, shadow, enforce"),
    "reason": LedgerColumn(Text, "why, in the operator's words"),
    "zone": LedgerColumn(Text, "of the grid"),
    "input_ages": LedgerColumn(Text, "name and age in seconds of each input, as JSON"),
    "forecast_source": LedgerColumn(Text, "who made the forecast"),
    "forecast_observed_at": LedgerColumn(Double, "when it was made, seconds since the epoch"),
    "forecast_digest": LedgerColumn(Text, "of its values"),
    "planned_start": LedgerColumn(Double, "seconds since the epoch"),
    "hold_until": LedgerColumn(Double, "the latest safe start, seconds since the epoch"),
    "deadline": LedgerColumn(Double, "seconds since the epoch"),
    "run_now_start": LedgerColumn(Double, "start in the counterfactual, as if not held"),
    "expected_runtime_s": LedgerColumn(Double, "as decided, seconds"),
    "measured_runtime_s": LedgerColumn(Double, "as it was measured, seconds"),
    "planned_energy_j": LedgerColumn(Double, "estimated, of what was decided, joules"),
    "planned_carbon_g": LedgerColumn(Double, "estimated, of what was decided, grams"),
    "planned_cost": LedgerColumn(Double, "estimated, of what was decided, in the currency"),
    "run_now_energy_j": LedgerColumn(Double, "estimated, of the counterfactual, joules"),
    "run_now_carbon_g": LedgerColumn(Double, "estimated, of the counterfactual, grams"),
    "run_now_cost": LedgerColumn(Double, "estimated, of the counterfactual, in the currency"),
    "measured_energy_j": LedgerColumn(
        Double, "measured, or by CPU time where the meter is kubelet, joules"
    ),
    "measured_carbon_g": LedgerColumn(Double, "by measured energy and the grid as it was, grams"),
    "measured_cost": LedgerColumn(Double, "by measured energy and the price as it was"),
    "meter": LedgerColumn(Text, f"that measured: {', '.join(_MEASURING)}; estimates: {_ESTIMATES}"),
    "currency": LedgerColumn(Text, "of all costs of the record"),
    "node": LedgerColumn(Text, "where it was placed"),
    "decision": LedgerColumn(Text, "the extender's, as JSON"),
}

RECORDS = Table(
    "records",
    METADATA,
    *(
        Column(name, about.type, primary_key=name == "id", nullable=True)
        for name, about in COLUMNS.items()
    ),
)
LOSSES = Table(
    "losses",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("reason", Text),
    Column("since", Double),
    Column("until", Double),
    Column("records", Integer),  # NULL: nobody knows how many
)
SCHEMA = Table("ledger_schema", METADATA, Column("version", Integer))
