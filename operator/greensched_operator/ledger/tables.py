"""The ledger's tables in the newest schema; `migrations.py` creates them."""

from dataclasses import dataclass

from sqlalchemy import Boolean, Column, Double, Integer, MetaData, Table, Text

from greensched_core.metering.meters.catalogue import ESTIMATING, POD_METERS

METADATA = MetaData()
_MEASURING = [meter.name for meter in POD_METERS if not meter.is_estimate]
_ESTIMATES = ", ".join(sorted(ESTIMATING))


@dataclass(frozen=True, slots=True)
class LedgerColumn:
    """A column of the records: its type, and its meaning for readers of the tables."""

    type: type[Text] | type[Double[float]] | type[Boolean]
    meaning: str


# In the order of export.
COLUMNS: dict[str, LedgerColumn] = {
    "id": LedgerColumn(Text, "identical each time the same decision is reported"),
    "what": LedgerColumn(Text, "held, planned, released, paused, resumed, placed, ended"),
    "at": LedgerColumn(Double, "when, seconds since the epoch"),
    "is_shadow": LedgerColumn(Boolean, "true in mode shadow: the decision had no effect"),
    "occurrence": LedgerColumn(Text, "distinguishes records of one kind on the same workload"),
    "kind": LedgerColumn(Text, "the workload's kind: Job, Pod"),
    "namespace": LedgerColumn(Text, "the workload's namespace"),
    "name": LedgerColumn(Text, "the workload's name"),
    "uid": LedgerColumn(Text, "the workload's UID"),
    "owner": LedgerColumn(Text, "kind/name of the object that created the workload"),
    "cpu_cores": LedgerColumn(Double, "requested CPU cores"),
    "memory_bytes": LedgerColumn(Double, "requested memory, bytes"),
    "gpus": LedgerColumn(Double, "requested GPUs"),
    "policy": LedgerColumn(Text, "name of the policy"),
    "mode": LedgerColumn(Text, "off, shadow, enforce"),
    "reason": LedgerColumn(Text, "why, in the operator's words"),
    "zone": LedgerColumn(Text, "grid zone"),
    "input_ages": LedgerColumn(Text, "name and age in seconds of each input, as JSON"),
    "forecast_source": LedgerColumn(Text, "source of the forecast"),
    "forecast_observed_at": LedgerColumn(
        Double, "when the forecast was made, seconds since the epoch"
    ),
    "forecast_digest": LedgerColumn(Text, "digest of the forecast's values"),
    "planned_start": LedgerColumn(Double, "seconds since the epoch"),
    "latest_start": LedgerColumn(Double, "the latest safe start, seconds since the epoch"),
    "deadline": LedgerColumn(Double, "seconds since the epoch"),
    "run_now_start": LedgerColumn(Double, "start in the counterfactual, as if not held"),
    "expected_runtime_s": LedgerColumn(Double, "runtime expected by the decision, seconds"),
    "measured_runtime_s": LedgerColumn(Double, "measured runtime, seconds"),
    "planned_energy_j": LedgerColumn(Double, "estimate for the decision, joules"),
    "planned_carbon_g": LedgerColumn(Double, "estimate for the decision, grams"),
    "planned_cost": LedgerColumn(Double, "estimate for the decision, in the currency"),
    "run_now_energy_j": LedgerColumn(Double, "estimate for the counterfactual, joules"),
    "run_now_carbon_g": LedgerColumn(Double, "estimate for the counterfactual, grams"),
    "run_now_cost": LedgerColumn(Double, "estimate for the counterfactual, in the currency"),
    "measured_energy_j": LedgerColumn(
        Double, "measured, or by CPU time if the meter is kubelet, joules"
    ),
    "measured_carbon_g": LedgerColumn(
        Double, "measured energy times the carbon intensity at that time, grams"
    ),
    "measured_cost": LedgerColumn(Double, "measured energy times the price at that time"),
    "meter": LedgerColumn(
        Text, f"source of the measured energy: {', '.join(_MEASURING)}; estimates: {_ESTIMATES}"
    ),
    "currency": LedgerColumn(Text, "currency of all costs in the record"),
    "node": LedgerColumn(Text, "node of the placement"),
    "decision": LedgerColumn(Text, "the extender's decision, as JSON"),
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
    Column("records", Integer),  # NULL: an unknown number
)
SCHEMA = Table("ledger_schema", METADATA, Column("version", Integer))
