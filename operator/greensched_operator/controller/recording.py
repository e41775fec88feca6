"""Writes decisions on work as ledger records, with their estimated costs.

Energy is that of `work_power`, as in planning: cores, GPUs or the JobPowerProfile, in the zone.
"""

from collections.abc import Callable, Container
from dataclasses import dataclass, replace

from greensched_core import labels
from greensched_core.clock import Clock
from greensched_core.ledger_records import (
    DELETED_WHILE_HELD,
    Amounts,
    ForecastUsed,
    InputAge,
    LedgerRecord,
    Subject,
    What,
)
from greensched_core.units import JOULES_PER_KWH
from greensched_operator.holding.holding import HoldTerms
from greensched_operator.holding.judging import MayWait, ReleaseNow, arrived_s
from greensched_operator.objects.release_patch import ReleaseReason, reason_of
from greensched_operator.objects.workloads import Work
from greensched_operator.planning.budgets import Budgets
from greensched_operator.planning.cluster_state import Zone
from greensched_operator.planning.situation import Planned, Situation
from greensched_operator.planning.work_power import own_part
from greensched_policies.planning.planning import NO_ZONE, Mean

_AS_PLANNED = (
    ReleaseReason.PLANNED_START,
    ReleaseReason.NOW_IS_BEST,
)  # any other reason starts it before its planned start

Write = Callable[[LedgerRecord], None]


@dataclass(frozen=True, slots=True)
class Estimates:
    """Estimated amounts of a workload as planned, and if it ran immediately."""

    planned: Amounts
    run_now: Amounts
    zone: str
    forecast: ForecastUsed | None
    forecast_age_s: float | None


def ledger_estimates(planned: Planned, situation: Situation) -> Estimates:
    """Return the estimates of a plan, by the forecast that it was based on."""
    waiting, zones = planned.waiting, situation.zones
    chosen, outlooks = planned.chosen, situation.outlooks
    forecast, age_s = None, None
    place = chosen.run.zone
    if 0 <= place < len(outlooks.sources) and outlooks.observed_s[place] is not None:
        observed_s = outlooks.observed_s[place] or 0.0
        forecast = ForecastUsed(outlooks.sources[place], observed_s, outlooks.digest)
        age_s = situation.now_s - observed_s
    return Estimates(
        _amounts(chosen.run, waiting, zones),
        _amounts(chosen.run_now, waiting, zones),
        planned.zone,
        forecast,
        age_s,
    )


def _amounts(run: Mean, waiting: MayWait, zones: tuple[Zone, ...]) -> Amounts:
    if run.zone == NO_ZONE:
        return Amounts()
    own = own_part(run, waiting.work, waiting.terms, zones)
    return Amounts(own.energy_kwh * JOULES_PER_KWH, own.carbon_g, own.cost)


def _scaled(amounts: Amounts, share: float) -> Amounts:
    values = (amounts.energy_j, amounts.carbon_g, amounts.cost)
    return Amounts(*(None if each is None else each * share for each in values))


def _sum(one: Amounts, other: Amounts) -> Amounts:
    pairs = ((one.energy_j, other.energy_j), (one.carbon_g, other.carbon_g), (one.cost, other.cost))
    return Amounts(*(None if a is None or b is None else a + b for a, b in pairs))


def _length_s(begin_s: float | None, until_s: float | None) -> float | None:
    return None if begin_s is None or until_s is None else max(until_s - begin_s, 0.0)


def subject_of(work: Work) -> Subject:
    """Return the subject of a record: the workload, or the Job of a Kueue Workload."""
    work = work.runs_as
    owner = f"{work.owner.kind}/{work.owner.name}" if work.owner else None
    return Subject(
        kind=work.kind,
        namespace=work.namespace,
        name=work.name,
        uid=work.uid,
        owner=owner,
        cpu_cores=work.cpu_cores,
        memory_bytes=work.memory_bytes,
        gpus=work.gpus,
    )


@dataclass(frozen=True, slots=True)
class _Known:
    """A recorded workload that has not ended."""

    waiting: MayWait
    estimates: Estimates
    latest_run_now: Amounts  # estimate of a start at the time of the latest planning
    is_shadow: bool
    is_released: bool = False


class Recorder:
    """Writes ledger records; remembers estimates until their work has ended."""

    def __init__(
        self,
        write: Write,
        budgets: Budgets,
        clock: Clock,
        currency: str,
        ended: Write = lambda record: None,
        running: Container[str] = (),
    ) -> None:
        """Pass each record of an end to `ended`, which adds measurements.

        `running` contains the UIDs of pods on nodes: a bare pod there is no longer held.
        """
        self._write = write
        self._budgets = budgets
        self._clock = clock
        self._currency = currency
        self._ended = ended
        self._running = running
        self._estimates: dict[str, _Known] = {}
        self._missed: set[str] = set()  # known, but not found by the last `keep_only`
        # Of paused work: amounts before the pause, and amounts if all had run immediately.
        self._spent: dict[str, tuple[Amounts, Amounts]] = {}

    def planned(self, planned: Planned, situation: Situation, *, is_shadow: bool = False) -> None:
        """Record a plan; a plan to start now is recorded by its release alone."""
        waiting, uid = planned.waiting, planned.waiting.work.runs_as.uid
        known, fresh = self._estimates.get(uid), ledger_estimates(planned, situation)
        latest_run_now, is_first = fresh.run_now, known is None
        if known is not None:  # if not held, it would have started on arrival
            fresh = replace(fresh, run_now=known.estimates.run_now)
        estimates = self._with_spent(uid, fresh)
        self._estimates[uid] = _Known(waiting, estimates, latest_run_now, is_shadow)
        if planned.is_now and not is_shadow:
            return  # its release is recorded immediately after
        record = self._record(What.PLANNED, waiting, estimates)
        if is_first and not is_shadow and not waiting.work.is_paused:
            self._write(replace(record, what=What.HELD, reason=planned.chosen.why))
        self._write(
            replace(record, is_shadow=is_shadow, planned_start=planned.start_s,
                    reason=planned.chosen.why)
        )  # fmt: skip

    def knows(self, work: Work) -> bool:
        """Return whether this leader, and not an earlier one, recorded a plan of a workload."""
        return work.runs_as.uid in self._estimates

    def released(self, release: ReleaseNow) -> None:
        """Record a start or a resumption."""
        what = What.RESUMED if release.work.is_paused else What.RELEASED
        known = self._estimates.get(release.work.runs_as.uid)
        if known is None:
            record = LedgerRecord(what=what, at=self._clock.now(), subject=subject_of(release.work))
        else:
            if release.reason not in _AS_PLANNED and what is What.RELEASED:
                known = replace(
                    known, estimates=replace(known.estimates, planned=known.latest_run_now)
                )
            self._estimates[release.work.runs_as.uid] = replace(known, is_released=True)
            record = self._record(what, known.waiting, known.estimates)
        if record.run_now_start is None:
            record = replace(record, run_now_start=arrived_s(release.work))
        if what is What.RELEASED:  # the first start spends all, including what runs after a pause
            self._budgets.spend(release.work.namespace, record.at, record.planned)
        self._write(replace(record, reason=release.reason))

    def released_by_others(self, work: Work) -> bool:
        """Record a start by the releaser, a user or an earlier leader, from its annotations.

        Return whether this recorder knew the work and had not recorded its release.
        """
        known, reason = self._estimates.get(work.uid), reason_of(work)
        if known is None:
            at_s, subject = work.marks.released_s or self._clock.now(), subject_of(work)
            self._write(LedgerRecord(what=What.RELEASED, at=at_s, subject=subject,
                                     run_now_start=arrived_s(work), reason=reason))  # fmt: skip
        elif not known.is_released:
            self.released(ReleaseNow(work, reason, ""))
            return True
        return False

    def paused(self, planned: Planned, situation: Situation) -> None:
        """Record a pause; its amounts cover the whole work, including what is done."""
        waiting = planned.waiting
        uid, estimates = waiting.work.uid, ledger_estimates(planned, situation)
        if (known := self._estimates.get(uid)) is not None:
            before = known.estimates.planned
            left_j, all_j = estimates.planned.energy_j, before.energy_j
            share = max(1.0 - left_j / all_j, 0.0) if left_j and all_j else 0.0
            self._spent[uid] = _scaled(before, share), known.estimates.run_now
        estimates = self._with_spent(uid, estimates)
        self._estimates[uid] = _Known(waiting, estimates, estimates.run_now, is_shadow=False)
        record = self._record(What.PAUSED, waiting, estimates)
        self._write(replace(record, planned_start=planned.start_s, reason=planned.chosen.why))

    def _with_spent(self, uid: str, estimates: Estimates) -> Estimates:
        """Return the estimates of remaining work plus the amounts before its pauses."""
        if uid not in self._spent:
            return estimates
        spent, run_now = self._spent[uid]
        return replace(estimates, planned=_sum(spent, estimates.planned), run_now=run_now)

    def ended(self, work: Work) -> None:
        """Record an end and the runtime; the runtime of paused work is unknown."""
        began_s = None if labels.PAUSED_AT in work.annotations else work.started_s
        if self._end(work.uid, began_s, work.ended_s) or not work.was_released:
            return
        # An earlier leader started it: its estimates are in the ledger, with its release. This
        # one may not have seen all of its pods, so their energy is not queried.
        record = LedgerRecord(what=What.ENDED, at=self._clock.now(), subject=subject_of(work))
        self._write(replace(record, measured_runtime_s=_length_s(began_s, work.ended_s)))

    def deleted(self, work: Work) -> None:
        """Record the end of work that was deleted while held, and so consumed nothing.

        Work that was started meanwhile, or that ran before it was paused, is not recorded.
        """
        known = self._estimates.get(work.uid)
        was_planned = known is not None or labels.PLANNED_START in work.annotations
        has_run = (
            work.uid in self._running or work.is_paused or (known is not None and known.is_released)
        )
        if not was_planned or has_run:
            return
        self._estimates.pop(work.uid, None)
        now_s, subject = self._clock.now(), subject_of(work)
        self._write(LedgerRecord(what=What.ENDED, at=now_s, subject=subject,
                                 reason=DELETED_WHILE_HELD))  # fmt: skip

    def pod_ended(self, uid: str, begin_s: float | None, until_s: float) -> None:
        """Record the end of a pod without a Job, and its runtime."""
        self._end(uid, begin_s, until_s)

    def keep_only(self, uids: Container[str]) -> None:
        """Forget work that was twice in a row neither in `uids` nor among running pods.

        Once is no proof: its end may not be recorded yet, or it may move between two watches.
        """
        missed = {uid for uid in self._estimates if uid not in uids and uid not in self._running}
        for uid in missed & self._missed:
            del self._estimates[uid]
            self._spent.pop(uid, None)
        self._missed = missed

    def _end(self, uid: str, begin_s: float | None, until_s: float | None) -> bool:
        """Record an end; return False for work that this recorder does not know."""
        known, spent = self._estimates.pop(uid, None), self._spent.pop(uid, None)
        if known is None:
            return False
        record = replace(
            self._record(What.ENDED, known.waiting, known.estimates),
            is_shadow=known.is_shadow,
            measured_runtime_s=_length_s(begin_s, until_s),
        )
        self._write(record)
        # If an earlier leader paused it, this one did not see what ran before.
        if spent is not None or not known.waiting.work.is_paused:
            self._ended(record)
        return True

    def _record(self, what: What, waiting: MayWait, estimates: Estimates) -> LedgerRecord:
        terms: HoldTerms = waiting.terms
        ages = (
            ()
            if estimates.forecast_age_s is None
            else (InputAge("forecast", estimates.forecast_age_s),)
        )
        return LedgerRecord(
            what=what,
            at=self._clock.now(),
            subject=subject_of(waiting.work),
            policy=waiting.policy.name or "built-in",
            mode=waiting.policy.mode,
            zone=estimates.zone or None,
            input_ages=ages,
            forecast=estimates.forecast,
            latest_start=terms.latest_start_s,
            deadline=terms.deadline_s,
            run_now_start=arrived_s(waiting.work),
            expected_runtime_s=terms.runtime_s,
            planned=estimates.planned,
            run_now=estimates.run_now,
            currency=self._currency,
        )
