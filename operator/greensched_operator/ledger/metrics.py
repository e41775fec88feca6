"""The ledger's metrics; no series per workload."""

from prometheus_client import CollectorRegistry, Counter, Gauge

from greensched_core.ledger_records import LossReason
from greensched_core.metering.meters.catalogue import POD_METERS
from greensched_operator.ledger.measuring import Unmeasured
from greensched_operator.ledger.writer import LedgerWriter

_PREFIX = "greensched_operator_ledger"


class LedgerMetrics:
    """Counts of records that were written and lost."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._lost = Counter(
            f"{_PREFIX}_records_lost",
            "Records that the ledger lost, by reason.",
            ["reason"],
            registry=registry,
        )
        self._written = Counter(
            f"{_PREFIX}_records_written", "Records written to the ledger.", registry=registry
        )
        self._waiting = Gauge(
            f"{_PREFIX}_records_waiting",
            "Ledger records that wait to be written to the database.",
            registry=registry,
        )
        self._usable = Gauge(
            f"{_PREFIX}_usable", "1 while the ledger can be written, else 0.", registry=registry
        )
        for reason in LossReason:  # so that alerts see the rise from zero
            self._lost.labels(reason)

    def count_lost(self, reason: LossReason, records: int) -> None:
        """Count records that were lost."""
        self._lost.labels(reason).inc(records)

    def count_written(self, records: int) -> None:
        """Count records that were written."""
        self._written.inc(records)

    def observe(self, writer: LedgerWriter) -> None:
        """Show the writer's state in the gauges whenever they are read."""
        self._waiting.set_function(lambda: writer.waiting)
        self._usable.set_function(lambda: writer.fault is None)


class MeasuringMetrics:
    """Counts of workloads whose energy was, or was not, measured."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._measured = Counter(
            f"{_PREFIX}_ends_measured",
            "Workloads whose energy was measured after their end, by meter.",
            ["meter"],
            registry=registry,
        )
        self._unmeasured = Counter(
            f"{_PREFIX}_ends_unmeasured",
            "Workloads whose energy remains an estimate although Prometheus is set, by reason.",
            ["reason"],
            registry=registry,
        )
        for meter in POD_METERS:
            self._measured.labels(meter.name)
        for reason in Unmeasured:
            self._unmeasured.labels(reason)

    def count_measured(self, meter: str) -> None:
        """Count a workload whose energy was measured."""
        self._measured.labels(meter).inc()

    def count_unmeasured(self, reason: Unmeasured) -> None:
        """Count a workload whose energy was not measured."""
        self._unmeasured.labels(reason).inc()
