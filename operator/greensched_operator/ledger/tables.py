"""The ledger's tables as the newest schema has them; `migrations.py` makes them."""

from dataclasses import dataclass

from sqlalchemy import Boolean, Column, Double, Integer, MetaData, Table, Text

from greensched_core.power.meters.catalogue import ESTIMATING, POD_METERS

METADATA = MetaData()
_MEASURING = [meter.name for meter in POD_METERS if not meter.is_estimate]
_ESTIMATES = ", ".join(sorted(ESTIMATING))


@dataclass(frozen=True, slots=True)
class About:
    """A column of the records: its type, and what a reader of tables should know of it."""

    type: type[Text] | type[Double[float]] | type[Boolean]
    meaning: str


# In the order of exports.
COLUMNS: dict[str, About] = {
    "id": About(Text, "identical each time the same decision is reported"),
    "what": About(Text, "held, planned, released, paused, resumed, placed, ended"),
    "at": About(Double, "when, seconds since the epoch"),
    "is_shadow": About(Boolean, "true in mode shadow: only what would have been done"),
    "occurrence": About(Text, "distinguishes records of one kind on the same workload"),
    "kind": About(Text, "of the workload: Job, Pod"),
    "namespace": About(Text, "of the workload"),
    "name": About(Text, "of the workload"),
    "uid": About(Text, "of the workload"),
    "owner": About(Text, "kind/name of what made the workload"),
    "cpu_cores": About(Double, "asked for"),
    "memory_bytes": About(Double, "asked for"),
    "gpus": About(Double, "asked for"),
    "policy": About(Text, "name of the policy"),
    "mode": About(Text, "off, shadow, enforce"),
    "reason": About(Text, "why, in the operator's words"),
    "zone": About(Text, "of the grid"),
    "input_ages": About(Text, "name and age in seconds of each input, as JSON"),
    "forecast_source": About(Text, "who made the forecast"),
    "forecast_observed_at": About(Double, "when it was made, seconds since the epoch"),
    "forecast_digest": About(Text, "of its values"),
    "planned_start": About(Double, "seconds since the epoch"),
    "hold_until": About(Double, "the latest safe start, seconds since the epoch"),
    "deadline": About(Double, "seconds since the epoch"),
    "run_now_start": About(Double, "start in the counterfactual, as if not held"),
    "expected_runtime_s": About(Double, "as decided, seconds"),
    "measured_runtime_s": About(Double, "as it was measured, seconds"),
    "planned_energy_j": About(Double, "estimated, of what was decided, joules"),
    "planned_carbon_g": About(Double, "estimated, of what was decided, grams"),
    "planned_cost": About(Double, "estimated, of what was decided, in the currency"),
    "run_now_energy_j": About(Double, "estimated, of the counterfactual, joules"),
    "run_now_carbon_g": About(Double, "estimated, of the counterfactual, grams"),
    "run_now_cost": About(Double, "estimated, of the counterfactual, in the currency"),
    "measured_energy_j": About(
        Double, "measured, or by CPU time where the meter is kubelet, joules"
    ),
    "measured_carbon_g": About(Double, "by measured energy and the grid as it was, grams"),
    "measured_cost": About(Double, "by measured energy and the price as it was"),
    "meter": About(Text, f"that measured: {', '.join(_MEASURING)}; estimates: {_ESTIMATES}"),
    "currency": About(Text, "of all costs of the record"),
    "node": About(Text, "where it was placed"),
    "decision": About(Text, "the extender's, as JSON"),
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
