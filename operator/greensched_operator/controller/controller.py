"""Holds, plans and releases: takes in changes from watches, decides in turns, and writes.

A short turn starts due work and plans new work. When a forecast or the cluster has changed, all
work is planned again, in a thread, so that releases never wait for it.
"""

import asyncio
import math
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeVar

import structlog

from greensched_core.clock import Clock
from greensched_core.durations import format_duration
from greensched_core.signals.timestamps import format_timestamp
from greensched_operator.controller.arrivals import Arrivals
from greensched_operator.controller.outputs import Outputs
from greensched_operator.controller.pauser import Pauser
from greensched_operator.holding.judging import (
    HoldRules,
    MayWait,
    ReleaseNow,
    arrived_s,
    profile_fault,
)
from greensched_operator.objects.cron_jobs import CronJob
from greensched_operator.objects.release_patch import ReleaseReason
from greensched_operator.objects.workloads import WorkKind
from greensched_operator.planning.held_works import HeldWorks
from greensched_operator.planning.outlooks import Outlooks, tell_the_same
from greensched_operator.planning.place_faults import place_fault
from greensched_operator.planning.plan_annotations import decision_of
from greensched_operator.planning.plan_words import why_held, why_now
from greensched_operator.planning.situation import Planned, Situation
from greensched_operator.planning.start_planning import requeued, room_check
from greensched_operator.runtime.planning_thread import in_thread
from greensched_operator.writing.metrics import ControllerError
from greensched_operator.writing.outbox import Lane
from greensched_policies.planning.held_start import WRITTEN_ANEW_S, has_moved

log = structlog.get_logger()

_LONGEST_SLEEP_S = 5.0  # wall seconds until the next turn, if nothing changes
_SHORTEST_SLEEP_S = 0.05
_AFTER_FAULT_S = 1.0  # wall seconds: a persistent fault does not flood the log
_DUE_EVERY_S = 0.25  # wall seconds between checks for due work while a thread plans
_GATHER_S = 0.2  # work that arrives within this time is planned together
_REPLAN_AT_MOST_EVERY_S = 5.0  # wall seconds: zones' forecasts arrive one after the other
_PLANNED = (ReleaseReason.PLANNED_START, ReleaseReason.RESUMED)

Result = TypeVar("Result")
PlanStarts = Callable[[Sequence[MayWait], Situation], tuple[list[Planned], list[ReleaseNow]]]
SituationNow = Callable[[Sequence[Planned]], Situation]


@dataclass(frozen=True)
class Planning:
    """The inputs of planning: the current rules and situation, and the planner.

    `situation` takes the earlier plans whose cores stay reserved.
    """

    rules: Callable[[], HoldRules]
    situation: SituationNow
    plan_starts: PlanStarts


@dataclass(frozen=True)
class ControllerPace:
    """The speed of our clock, and the interval at which all work is planned again."""

    rate: float
    replan_every_s: float


class Controller:
    """The leader's loop over held work."""

    def __init__(
        self,
        works: HeldWorks,
        arrivals: Arrivals,
        planning: Planning,
        outputs: Outputs,
        pauser: Pauser,
        clock: Clock,
        pace: ControllerPace,
    ) -> None:
        self.works = works
        self._arrivals = arrivals
        self._rules = planning.rules
        self._situation = planning.situation
        self._plan_starts = planning.plan_starts
        self._outbox = outputs.outbox
        self._writer = outputs.writer
        self._recorder = outputs.recorder
        self._metrics = outputs.metrics
        self._pauser = pauser
        self._clock = clock
        self._pace = pace
        self._wake = asyncio.Event()
        self._planned_at_s = -float("inf")  # our clock
        self._replanned_at = -float("inf")  # monotonic
        # The zones and forecasts on which all was last planned anew.
        self._planned_on: tuple[list[str], Outlooks] | None = None
        self._is_stale = True  # a forecast, a policy or the cluster has changed
        self._counted: set[str] = set()  # held works whose start is counted and reported

    def wake(self) -> None:
        """Take a turn soon."""
        self._wake.set()

    def replan(self) -> None:
        """Plan all work again soon: an input of the plans has changed."""
        self._is_stale = True
        self._wake.set()

    def rejudge(self, _: object = None) -> None:
        """Judge and plan all work again: the rules have changed."""
        self.works.judge_all()
        self.replan()

    def rejudge_runs(self, cron_job: CronJob) -> None:
        """Judge the runs of a CronJob again."""
        self.works.judge_runs_of(cron_job)
        self.wake()

    async def run(self) -> None:
        """Take turns until cancelled."""
        while True:
            try:
                await self.turn()
            except Exception:  # the releaser still starts held work in time
                log.exception("a turn failed; trying again")
                self._metrics.fallbacks.labels(ControllerError.TURN_FAILED).inc()
                await asyncio.sleep(_AFTER_FAULT_S)
            await self._sleep()

    async def turn(self) -> None:
        """Start due work, plan new work, and write changes."""
        now_s, monotonic_s = self._clock.now(), self._clock.monotonic()
        rules = self._rules()
        self._pauser.look()
        self._start_due()
        if self._is_time_for_all(now_s, monotonic_s):
            may_stay = not self._is_stale
            self._is_stale, self._planned_at_s, self._replanned_at = False, now_s, monotonic_s
            self._recorder.keep_only(self.works.known())
            with self._metrics.replan_s.time():
                await self._queue_again()
                # What was sent, and nobody has seen start, neither waits nor queues yet.
                sent = [one for uid, one in self.works.planned.items() if self.works.was_sent(uid)]
                await self._plan(self.works.waiting(), sent, is_all=True, plans_may_stay=may_stay)
            planned = list(self.works.planned.values())
            pausing = self._pauser.pause(rules, lambda: self._situation(planned))
            await self._while_starting(pausing)
        elif unplanned := self.works.unplanned():
            await self._plan(unplanned, list(self.works.planned.values()))
        news = self.works.take_news(monotonic_s)
        await self._while_starting(self._arrivals.process(news, rules, self._situation))
        self._show()

    def _start_due(self) -> None:
        """Start all work that is due, or that the current rules say to start."""
        now_s, monotonic_s = self._clock.now(), self._clock.monotonic()
        check = cache(lambda: room_check(self._situation(list(self.works.planned.values()))))
        for release in self.works.judged(
            self._rules(), now_s, monotonic_s, lambda planned: check()(planned)
        ):
            self._send(release)

    async def _while_starting(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Return a coroutine's result; start what becomes due while it runs."""
        task = asyncio.create_task(work)
        try:
            while not (await asyncio.wait({task}, timeout=_DUE_EVERY_S))[0]:
                self._start_due()
        finally:
            task.cancel()  # if we are cancelled; no effect on a task that is done
        return task.result()

    async def _queue_again(self) -> None:
        """Find out anew what room released work can expect that has no node yet."""
        if not len(self.works.queue):
            return
        try:
            queued = await self._while_starting(in_thread(requeued, self._situation([])))
        except Exception:  # the room reserved before stays
            log.exception("planning queued work failed; its room stays as it was")
            self._metrics.fallbacks.labels(ControllerError.PLANNING_FAILED).inc()
            return
        self.works.queue.replace(queued)

    async def _plan(
        self,
        waiting: Sequence[MayWait],
        earlier_plans: Sequence[Planned],
        *,
        is_all: bool = False,
        plans_may_stay: bool = False,
    ) -> None:
        """Plan work, all of it or what has no plan yet, beside earlier plans.

        `plans_may_stay`: of all work only that whose earlier plan has no room any more.
        """
        if not waiting:
            return
        try:
            situation = self._situation(earlier_plans)
            if is_all or not earlier_plans:
                is_anew = not plans_may_stay or not self._is_as_planned(situation)
                if is_anew:
                    self._planned_on = _names(situation), situation.outlooks
                earlier = dict(self.works.planned)
                situation = replace(situation, staying=earlier, may_move=is_anew)
            planning = in_thread(self._plan_starts, waiting, situation)
            planned, released = await self._while_starting(planning)
        except Exception:  # held work still starts at its latest start
            log.exception("planning failed; trying again", workloads=len(waiting))
            self._metrics.fallbacks.labels(ControllerError.PLANNING_FAILED).inc()
            self._is_stale = True
            return
        for release in released:
            self._send_gang(release)
        for one in planned:
            self._take(one, situation)

    def _is_as_planned(self, now: Situation) -> bool:
        """Return whether zones and forecasts are those on which all was last planned."""
        if self._planned_on is None:
            return False
        zones, outlooks = self._planned_on
        return zones == _names(now) and tell_the_same(outlooks, now.outlooks)

    def _take(self, planned: Planned, situation: Situation) -> None:
        work = planned.waiting.work
        current = self.works.held.get(work.uid)
        if current is None or self.works.was_sent(work.uid):
            return  # it was started or deleted while the thread planned
        before_s = work.marks.planned_start_s
        is_new = has_moved(math.nan if before_s is None else before_s, planned.start_s)
        if is_new or not self._recorder.knows(work):
            self._recorder.planned(planned, situation)
        self.works.plan(planned)
        if planned.is_now and not current.is_ending:
            as_planned = ReleaseReason.RESUMED if work.is_paused else ReleaseReason.PLANNED_START
            reason = as_planned if before_s == planned.start_s else ReleaseReason.NOW_IS_BEST
            self._send_gang(ReleaseNow(work, reason, why_now(planned), decision_of(planned)))
            return
        if not _is_written(planned):
            fault = place_fault(planned.waiting, situation) if before_s is None else ""
            self._outbox.put(
                work.uid, planned.start_s, lambda: self._write(planned, fault), Lane.PLAN
            )

    async def _write(self, planned: Planned, fault_of_place: str) -> bool:
        """Write a plan on its workload; return whether it is written or obsolete."""
        waiting = planned.waiting
        work, latest_s = waiting.work, waiting.terms.latest_start_s
        current = self.works.planned.get(work.uid)
        if current is None or current.start_s != planned.start_s:
            return True  # there is a newer plan, or the workload has started
        is_first, text = work.marks.planned_start_s is None, why_held(planned)
        if not await self._writer.plan(work, planned.start_s, latest_s, text, decision_of(planned)):
            return False
        self._metrics.plans.inc()
        if is_first:
            start = format_timestamp(round(planned.start_s))
            await self._writer.create_event(work, "Held", f"start planned for {start}: {text}")
            for reason, fault in (
                ("PolicyFault", waiting.policy_fault),
                ("ProfileFault", profile_fault(work, self._rules())),
                ("NoNodeFits", fault_of_place),
            ):
                if fault:
                    await self._writer.create_event(work, reason, fault, is_warning=True)
        return True

    def _send_gang(self, release: ReleaseNow) -> None:
        """Start a workload that planning does not hold, and its gang."""
        for each in self.works.with_mates(release):
            self._send(each)

    def _send(self, release: ReleaseNow) -> None:
        """Queue a workload's start: rate-limited if there is time, else without a limit."""
        self.works.sent(release, self._clock.monotonic())
        self._outbox.put(
            release.work.uid,
            self._latest_s(release.work.uid),
            lambda: self._release(release),
            Lane.RELEASE if release.reason in (*_PLANNED, ReleaseReason.NOW_IS_BEST) else Lane.NOW,
        )

    async def _release(self, release: ReleaseNow) -> None:
        work, planned = release.work, self.works.planned.get(release.work.uid)
        if work.uid not in self.works.held:
            return
        decision = release.decision
        if decision is None and planned is not None and release.reason in _PLANNED:
            decision = decision_of(planned)  # newer than the written one, which had the same start
        if not await self._writer.release(work, release.reason, decision):
            return  # it will be sent again
        if work.uid in self._counted:
            return  # the watch showed the start late, so the release was sent twice
        self._counted.add(work.uid)
        now_s = self._clock.now()
        counter = self._metrics.resumed if work.is_paused else self._metrics.released
        counter.labels(release.reason).inc()
        self._recorder.released(release)
        if planned is not None and release.reason in _PLANNED:
            self._metrics.lateness_s.observe(max(now_s - planned.start_s, 0.0) / self._pace.rate)
        waited = format_duration(max(now_s - arrived_s(work), 0.0))
        if not _tells_itself(release):
            is_late = release.reason in (ReleaseReason.LATEST_START, ReleaseReason.HELD_SHARE)
            note = f"{release.reason}: {release.text}"
            verb = "Resumed" if work.is_paused else "Released"
            await self._writer.create_event(work, verb, note, is_warning=is_late)
        log.info("started", work=f"{work.namespace}/{work.name}", reason=release.reason,
                 waited=waited)  # fmt: skip

    def _latest_s(self, uid: str) -> float:
        planned = self.works.planned.get(uid)
        return 0.0 if planned is None else planned.waiting.terms.latest_start_s

    def _is_time_for_all(self, now_s: float, monotonic_s: float) -> bool:
        if monotonic_s - self._replanned_at < _REPLAN_AT_MOST_EVERY_S / self._pace.rate:
            return False
        return self._is_stale or now_s - self._planned_at_s >= self._pace.replan_every_s

    def _show(self) -> None:
        self._counted &= self.works.held.keys()
        by_namespace: dict[str, int] = {}
        cores = 0.0
        for work in self.works.held.values():
            by_namespace[work.namespace] = by_namespace.get(work.namespace, 0) + 1
            cores += work.cpu_cores
        self._metrics.held.clear()
        for namespace, count in by_namespace.items():
            self._metrics.held.labels(namespace).set(count)
        self._metrics.held_cores.set(cores)

    async def _sleep(self) -> None:
        """Sleep until the next start, the next planning, or a change."""
        now_s = self._clock.now()
        due_s = min(self.works.next_due_s(), self._planned_at_s + self._pace.replan_every_s)
        wall_s = (due_s - now_s) / self._pace.rate
        try:
            async with asyncio.timeout(min(max(wall_s, _SHORTEST_SLEEP_S), _LONGEST_SLEEP_S)):
                await self._wake.wait()
                await asyncio.sleep(min(_GATHER_S, _GATHER_S * 10 / self._pace.rate))
        except TimeoutError:
            pass
        self._wake.clear()


def _names(situation: Situation) -> list[str]:
    return [zone.name for zone in situation.zones]


def _tells_itself(release: ReleaseNow) -> bool:
    """Return whether an event of Kubernetes tells of a start that one of ours has announced.

    The Job controller has the event Resumed; "Held" or "Paused" said when. A Job in a queue is
    started by Kueue.
    """
    is_job = release.work.kind == WorkKind.JOB and not release.work.queue_gates
    return is_job and release.reason in _PLANNED


def _is_written(planned: Planned) -> bool:
    """Return whether the plan is on the workload, with a latest start that is not too late.

    The releaser knows only that latest start, so an earlier one must be written.
    """
    work, latest_s = planned.waiting.work, planned.waiting.terms.latest_start_s
    start_s, until_s = work.marks.planned_start_s, work.marks.latest_start_s
    if start_s is None or has_moved(start_s, planned.start_s):
        return False
    if work.kind != WorkKind.WORKLOAD and not work.has_plan_condition:  # announcing a pause failed
        return False
    return until_s is not None and until_s - latest_s < WRITTEN_ANEW_S
