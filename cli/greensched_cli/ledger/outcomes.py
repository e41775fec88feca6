"""The outcome of each workload, from the records of its decisions."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from greensched_cli.reading.operator_state import OVERDUE_S
from greensched_core.ledger_records import (
    DELETED_WHILE_HELD,
    NOTHING_KNOWN,
    Amounts,
    LedgerRecord,
    What,
)
from greensched_core.metering.meters.catalogue import ESTIMATING

_LATE_S = 1.0  # times of Kubernetes' objects are whole seconds


@dataclass(frozen=True, slots=True)
class WorkOutcome:
    """One workload: the amounts it took, or will take, and those of an immediate start.

    If energy was measured, or estimated by CPU time, `run_now` is scaled to the same energy: its
    estimate, times that energy over the planned energy. None means no data.
    """

    namespace: str
    at: float  # its end, else its release, else its latest plan
    is_shadow: bool
    has_started: bool  # always true in shadow mode, which holds nothing
    took: Amounts
    run_now: Amounts
    currency: str | None
    is_measured: bool
    is_by_cpu_time: bool  # energy estimated by its CPU time, not measured
    release_reason: str | None
    late_s: float | None  # past the deadline; None without an end or a deadline
    deadline: float | None
    has_ended: bool
    was_held: bool
    pauses: int
    was_deleted: bool  # while held, so it never started
    latest_start: float | None  # its latest start; None if none was recorded
    estimated: Amounts = NOTHING_KNOWN  # the plan's, before any measurement
    measured: Amounts = NOTHING_KNOWN


def outcomes_of(records: Iterable[LedgerRecord]) -> list[WorkOutcome]:
    """Return an outcome for each workload with a decision on when it runs, sorted by time.

    Placements are left out: they decide only where work runs, and have no counterfactual.
    """
    decisions = [record for record in records if record.what is not What.PLACED]
    return sorted(map(_outcome, _by_workload(decisions)), key=lambda outcome: outcome.at)


def counted(records: Sequence[LedgerRecord]) -> Mapping[What, int]:
    """Return the number of records of each kind, without those of shadow mode."""
    return Counter(record.what for record in records if not record.is_shadow)


def _by_workload(records: Iterable[LedgerRecord]) -> Iterable[list[LedgerRecord]]:
    """Return the records of each workload.

    A record of admission has no UID yet: it joins the next object of its name, because only one
    object has that name at a time.
    """
    whole: dict[tuple[str, bool], list[LedgerRecord]] = {}
    admitted: dict[tuple[str, bool], list[LedgerRecord]] = {}
    for record in sorted(records, key=lambda record: record.at):
        subject = record.subject
        named = (f"{subject.kind}/{subject.namespace}/{subject.name}", record.is_shadow)
        if subject.uid is None:
            admitted.setdefault(named, []).append(record)
        else:
            known = whole.setdefault((subject.uid, record.is_shadow), [])
            known += [*admitted.pop(named, []), record]
    return [*whole.values(), *admitted.values()]


def _outcome(records: Sequence[LedgerRecord]) -> WorkOutcome:
    mine = sorted(records, key=lambda record: record.at)
    latest = {record.what: record for record in mine}
    ended, released = latest.get(What.ENDED), latest.get(What.RELEASED)
    was_deleted = not released and ended is not None and ended.reason == DELETED_WHILE_HELD
    shown = ended or released or mine[-1]
    billed = _as_it_came(mine, _billed(mine, shown))
    deadline = next((each.deadline for each in reversed(mine) if each.deadline is not None), None)
    latest_starts = (each.latest_start for each in reversed(mine) if each.latest_start is not None)
    has_energy = shown.measured.energy_j is not None
    is_by_cpu_time = has_energy and shown.meter in ESTIMATING
    # In shadow mode work ran at once: only its energy compares with the plan that is reported.
    comparable = Amounts(shown.measured.energy_j) if shown.is_shadow else shown.measured
    took, run_now = _at_the_same_energy(comparable, billed)
    return WorkOutcome(
        namespace=shown.subject.namespace,
        at=shown.at,
        is_shadow=shown.is_shadow,
        has_started=shown.is_shadow or (bool(ended or released) and not was_deleted),
        took=took,
        run_now=run_now,
        currency=billed.currency or shown.currency,
        is_measured=has_energy and not is_by_cpu_time,
        is_by_cpu_time=is_by_cpu_time,
        release_reason=(released.reason or "not recorded") if released else None,
        late_s=None if ended is None or deadline is None or was_deleted else ended.at - deadline,
        deadline=deadline,
        has_ended=ended is not None,
        was_held=What.HELD in latest,
        pauses=sum(1 for record in mine if record.what is What.PAUSED),
        was_deleted=was_deleted,
        latest_start=next(latest_starts, None),
        estimated=billed.planned,
        measured=NOTHING_KNOWN if is_by_cpu_time else shown.measured,
    )


def _billed(mine: Sequence[LedgerRecord], shown: LedgerRecord) -> LedgerRecord:
    """Return the record whose estimates count: the shown one, else the latest with estimates."""
    with_both = [each for each in mine if each.planned != Amounts() and each.run_now != Amounts()]
    return shown if shown in with_both or not with_both else with_both[-1]


def _as_it_came(mine: Sequence[LedgerRecord], billed: LedgerRecord) -> LedgerRecord:
    """Return the record with the first estimate of running at once.

    A later leader does not know that estimate, and makes one for the hour when it began to lead.
    """
    first = next((each.run_now for each in mine if each.run_now != Amounts()), None)
    if first is None or billed.run_now == Amounts():
        return billed
    return replace(billed, run_now=first)


def _at_the_same_energy(measured: Amounts, billed: LedgerRecord) -> tuple[Amounts, Amounts]:
    planned, run_now = billed.planned, billed.run_now
    if measured.energy_j is None:
        return planned, run_now
    share = measured.energy_j / planned.energy_j if planned.energy_j else None
    # Carbon or cost that was not measured is the estimate, scaled to the measured energy.
    took = Amounts(
        measured.energy_j,
        _first(measured.carbon_g, _times(planned.carbon_g, share)),
        _first(measured.cost, _times(planned.cost, share)),
    )
    scaled = replace(
        run_now,
        energy_j=_times(run_now.energy_j, share),
        carbon_g=_times(run_now.carbon_g, share),
        cost=_times(run_now.cost, share),
    )
    return took, scaled


def _times(amount: float | None, share: float | None) -> float | None:
    return None if amount is None or share is None else amount * share


def _first(one: float | None, other: float | None) -> float | None:
    return other if one is None else one


def is_late(outcome: WorkOutcome) -> bool:
    """Return whether work ended more than a second past its deadline."""
    return outcome.late_s is not None and outcome.late_s > _LATE_S


def is_waiting(outcome: WorkOutcome, now: float) -> bool:
    """Return whether held work may still start: not deleted, and its latest start not passed.

    After its latest start, the controller or the releaser has started it. The ledger may lack a
    record of the start, or of a deletion while no controller ran.
    """
    is_past = outcome.latest_start is not None and outcome.latest_start + OVERDUE_S < now
    return not (outcome.has_started or outcome.was_deleted or is_past)


def is_overdue(outcome: WorkOutcome, now: float) -> bool:
    """Return whether work's deadline has passed and its end is not recorded."""
    is_open = not outcome.has_ended and not outcome.is_shadow
    return is_open and outcome.deadline is not None and outcome.deadline + _LATE_S < now
