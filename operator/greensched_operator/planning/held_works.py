"""Held work with its judgements and plans: state without input or output.

Level-triggered: only the current state of each object counts, not the order of events.
"""

from collections.abc import Callable, Container
from dataclasses import replace
from typing import TypeVar

import structlog

from greensched_core import labels
from greensched_operator.holding.judging import (
    HoldRules,
    MayWait,
    ReleaseNow,
    at_its_latest,
    judge,
    left_to_run_s,
)
from greensched_operator.objects.cron_jobs import CronJob
from greensched_operator.objects.release_patch import ReleaseReason, reason_of
from greensched_operator.objects.workloads import Work, WorkKind
from greensched_operator.planning.news import News
from greensched_operator.planning.queued_works import QueuedWorks
from greensched_operator.planning.situation import Planned

log = structlog.get_logger()

Value = TypeVar("Value")

RESENT_AFTER_S = 10.0  # a release is sent again if the watch does not show it by then


class HeldWorks:
    """All work that opted in and has not ended, by uid."""

    def __init__(self, scheduler_names: frozenset[str]) -> None:
        self._schedulers = scheduler_names
        self.held: dict[str, Work] = {}
        self.planned: dict[str, Planned] = {}
        self.queue = QueuedWorks()
        self.news = News()
        self._waiting: dict[str, MayWait] = {}
        self._unjudged: set[str] = set()
        self._unheld: dict[str, Work] = {}
        self.pausable: dict[str, Work] = {}  # unheld Jobs that may ask for pauses
        self._gangs: frozenset[tuple[str, str]] = frozenset()  # running at the last judgement
        self._disowned: set[str] = set()  # stopped by us, but without our mark
        self._released: dict[str, tuple[ReleaseNow, float]] = {}  # with the monotonic sending time
        # Reported until it is corrected, and the monotonic time before which not to report again.
        self._marked: dict[str, tuple[Work, float]] = {}
        self._over: dict[str, tuple[ReleaseNow, float]] = {}

    def __len__(self) -> int:
        return len(self.held)

    def put(self, work: Work) -> None:
        """Take in an added or changed object."""
        is_ours = work.scheduler in self._schedulers or work.is_marked or work.is_left
        if not (is_ours or work.uid in self.held or work.uid in self._unheld):
            return
        if work.is_finished or work.is_leaving:
            self._end(work)
        elif work.is_held or self._is_unmarked(work):
            self._hold(work)
        else:
            self._put_unheld(work)

    def drop(self, uid: str) -> None:
        """Forget a deleted object or a pod that got a node; its arrival is still reported."""
        arrived = self.news.arrived.get(uid)
        self._report_deletion(uid)
        self._forget(uid)
        self._drop_unheld(uid)
        if arrived is not None:
            self.news.arrived[uid] = arrived

    def judge_all(self) -> None:
        """Judge all held work again: policies, CronJobs or the emergency release have changed."""
        self._unjudged = set(self.held)

    def judge_runs_of(self, cron_job: CronJob) -> None:
        """Judge the runs of a changed CronJob again."""
        self._unjudged |= {
            uid
            for uid, work in self.held.items()
            if work.owner is not None
            and work.owner.kind == "CronJob"
            and (work.namespace, work.owner.name) == (cron_job.namespace, cron_job.name)
        }

    def judged(
        self,
        rules: HoldRules,
        now_s: float,
        monotonic_s: float,
        has_room: Callable[[Planned], bool] = lambda planned: True,
    ) -> list[ReleaseNow]:
        """Return the work to start now: judged to start, or due.

        Released work counts as held until the watch shows its start. Its release is sent again
        after `RESENT_AFTER_S`. Work whose planned start has come, but for which there is no room,
        loses its plan: until its latest start it is planned again.
        """
        self._released = {uid: (release, at_s) for uid, (release, at_s) in self._released.items()
                          if monotonic_s - at_s <= RESENT_AFTER_S}  # fmt: skip
        found, lacking = dict[str, ReleaseNow](), set[str]()
        gangs = self._running_gangs()
        self._unjudged |= self._held_of(gangs - self._gangs)
        self._gangs = gangs
        for uid in self._unjudged:
            work = self.held[uid]
            judgement = (
                self._disowning(work) or self._joining(work, gangs) or _judged(work, rules, now_s)
            )
            if isinstance(judgement, ReleaseNow):
                found[uid] = judgement
            else:
                self._waiting[uid] = judgement
        self._unjudged = set(found)  # until the watch shows their start
        for uid, one in self._waiting.items():
            latest_s = one.terms.latest_start_s
            planned = self.planned.get(uid)
            if now_s >= latest_s and uid not in found:
                found[uid] = at_its_latest(one.work, one.terms)
            elif planned is not None and self._is_due(planned, now_s) and uid not in found:
                if uid not in self._released and not has_room(planned):
                    lacking.add(uid)
                    continue
                reason = (
                    ReleaseReason.RESUMED if one.work.is_paused else ReleaseReason.PLANNED_START
                )
                found[uid] = ReleaseNow(one.work, reason, "its planned start has come")
        self._with_gangs(found)
        for uid in lacking - found.keys():  # what starts with its gang keeps the room it has
            del self.planned[uid]
        return [each for uid, each in found.items() if uid not in self._released]

    def with_mates(self, release: ReleaseNow) -> list[ReleaseNow]:
        """Return a release and those of its gang, except the ones already sent."""
        found = {release.work.uid: release}
        self._with_gangs(found)
        return [each for uid, each in found.items() if uid not in self._released]

    def unplanned(self) -> list[MayWait]:
        """Return the work that may wait and has no plan yet."""
        return [
            one
            for uid, one in self._waiting.items()
            if uid not in self.planned and uid not in self._released
        ]

    def waiting(self) -> list[MayWait]:
        """Return all work that may wait."""
        return [one for uid, one in self._waiting.items() if uid not in self._released]

    def plan(self, planned: Planned) -> None:
        """Store a plan, unless its workload has changed or gone since it was planned."""
        uid = planned.waiting.work.uid
        if self._waiting.get(uid) is planned.waiting:
            self.planned[uid] = planned

    def sent(self, release: ReleaseNow, monotonic_s: float) -> None:
        """Record that a release was sent; work over the held share loses its plan, and its room."""
        self._released[release.work.uid] = release, monotonic_s
        if release.reason is ReleaseReason.HELD_SHARE:
            self.planned.pop(release.work.uid, None)

    def was_sent(self, uid: str) -> bool:
        """Return whether a release of the workload was sent less than `RESENT_AFTER_S` ago."""
        return uid in self._released

    def take_news(self, monotonic_s: float) -> News:
        """Return the changes since the last call.

        Started work with our mark, or with a condition that still announces a start, is reported
        every `RESENT_AFTER_S` until that is corrected.
        """
        news, self.news = self.news, News()
        news.marked = list(_due(self._marked, monotonic_s).values())
        news.over |= _due(self._over, monotonic_s)
        return news

    def next_due_s(self) -> float:
        """Return when the next workload must start, infinity where none waits."""
        times = (self._due_s(uid, one) for uid, one in self._waiting.items()
                 if uid not in self._released)  # fmt: skip
        return min(times, default=float("inf"))

    def pods(self) -> list[str]:
        """Return the uids of all pods that opted in and have no node, held or not."""
        works = (*self.held.items(), *self._unheld.items())
        return [uid for uid, work in works if work.kind == WorkKind.POD]

    def known(self) -> frozenset[str]:
        """Return the uids of all work that opted in and has not ended."""
        return frozenset(self.held.keys() | self._unheld.keys())

    def expected_s(self, uid: str, rules: HoldRules, speed: float = 1.0) -> float | None:
        """Return the planned runtime of unheld work on a node; None if it has not opted in.

        In seconds, from its start or resumption.
        """
        work = self._unheld.get(uid)
        return None if work is None else left_to_run_s(work, rules, speed)

    @staticmethod
    def _is_due(planned: Planned, now_s: float) -> bool:
        """Return whether a planned start has come and no pod of an earlier segment still runs."""
        return now_s >= planned.start_s and not planned.waiting.work.is_ending

    def _due_s(self, uid: str, one: MayWait) -> float:
        planned = self.planned.get(uid)
        latest_s = one.terms.latest_start_s
        if planned is None or one.work.is_ending:
            return latest_s
        return min(planned.start_s, latest_s)

    def _hold(self, work: Work) -> None:
        self._drop_unheld(work.uid)
        self.news.over.pop(work.uid, None)
        if not work.is_marked:
            self._disowned.add(work.uid)
        before = self.held.get(work.uid)
        self.held[work.uid] = work
        if before is None or _has_changed(before, work):
            self._unjudged.add(work.uid)
            self._waiting.pop(work.uid, None)
            self.planned.pop(work.uid, None)
        elif work.uid in self._waiting:
            # Only what we wrote has changed: keep the judgement, with the newer object.
            self._refresh(work)

    def _refresh(self, work: Work) -> None:
        old = self._waiting[work.uid]
        fresh = replace(old, work=work)
        self._waiting[work.uid] = fresh
        planned = self.planned.get(work.uid)
        if planned is not None:
            self.planned[work.uid] = planned.on(fresh)

    def _put_unheld(self, work: Work) -> None:
        if self._was_released_by_others(work):
            self.news.released.append(work)
        self._end_wait(work)
        if work.is_stopped:
            self.queue.drop(work.uid)
        elif (planned := self.planned.get(work.uid)) is not None:
            self.queue.put(planned)
        self._forget(work.uid)
        if work.is_marked and not work.is_barred:
            if work.uid not in self._marked:
                self.news.started.append(work)
            self._marked[work.uid] = work, float("-inf")
        else:
            self._marked.pop(work.uid, None)
        if work.uid not in self._unheld and not work.is_stopped and not work.is_served:
            self.news.arrived[work.uid] = work
        self._unheld[work.uid] = work
        if work.is_ours and not work.is_stopped and _may_ask_for_pauses(work):
            self.pausable[work.uid] = work
        else:
            self.pausable.pop(work.uid, None)

    def _end_wait(self, work: Work) -> None:
        """Report that a planned wait is over, until the condition says so too."""
        if not work.has_plan_condition:
            self._over.pop(work.uid, None)
        elif work.uid not in self._over:
            ours, _ = self._released.get(work.uid, (None, 0.0))
            release = ReleaseNow(work, reason_of(work), "")
            if ours is not None and ours.reason is release.reason:
                release = ours
            self.news.over[work.uid] = release  # a pod may get a node before the next `take_news`
            self._over[work.uid] = release, float("-inf")

    def _was_released_by_others(self, work: Work) -> bool:
        """Return whether this is the first sight of a start that this controller did not send."""
        is_known = work.uid in self._unheld or work.uid in self._released
        has_paused = labels.PAUSED_AT in work.annotations
        return work.was_released and not (is_known or has_paused or work.is_stopped)

    def _drop_unheld(self, uid: str) -> bool:
        self.news.arrived.pop(uid, None)
        self.pausable.pop(uid, None)
        self._marked.pop(uid, None)
        self._over.pop(uid, None)
        self.queue.drop(uid)
        return self._unheld.pop(uid, None) is not None

    def _end(self, work: Work) -> None:
        if work.is_finished:
            self._end_wait(work)
        else:
            self._report_deletion(work.uid)
        self._forget(work.uid)
        if self._drop_unheld(work.uid) and work.is_finished:
            self.news.ended.append(work)

    def _report_deletion(self, uid: str) -> None:
        """Report deleted held work, but no Kueue Workload: its Job may go on."""
        work = self.held.get(uid)
        if work is not None and work.kind != WorkKind.WORKLOAD:
            self.news.deleted.append(work)

    def _forget(self, uid: str) -> None:
        self.held.pop(uid, None)
        self.planned.pop(uid, None)
        self._waiting.pop(uid, None)
        self._released.pop(uid, None)
        self._unjudged.discard(uid)
        self._disowned.discard(uid)

    def _disowning(self, work: Work) -> ReleaseNow | None:
        if work.uid not in self._disowned:
            return None
        return ReleaseNow(
            work, ReleaseReason.OPT_OUT, "GreenSched's mark of holding it was removed"
        )

    def _running_gangs(self) -> frozenset[tuple[str, str]]:
        return frozenset(
            (work.namespace, work.gang)
            for work in self._unheld.values()
            if work.gang and not work.is_stopped
        )

    def _held_of(self, gangs: Container[tuple[str, str]]) -> set[str]:
        if not gangs:
            return set()
        return {uid for uid, work in self.held.items() if (work.namespace, work.gang) in gangs}

    def _joining(self, work: Work, gangs: Container[tuple[str, str]]) -> ReleaseNow | None:
        if (work.namespace, work.gang) not in gangs:
            return None
        return ReleaseNow(
            work, ReleaseReason.GANG, f"other members of its gang {work.gang} already run"
        )

    def _with_gangs(self, found: dict[str, ReleaseNow]) -> None:
        """Add the held members of the gangs in `found`."""
        gangs = {
            (each.work.namespace, each.work.gang): each for each in found.values() if each.work.gang
        }
        if not gangs:
            return
        for uid, work in self.held.items():
            first = gangs.get((work.namespace, work.gang)) if work.gang else None
            if first is not None and uid not in found:
                text = f"{first.work.name}, of the same gang, starts: {first.text}"
                found[uid] = ReleaseNow(work, first.reason, text)

    def _is_unmarked(self, work: Work) -> bool:
        """Return whether a user has just removed our mark from held work.

        If the release time changed too, it was started, and its user stopped it again.
        """
        before = self.held.get(work.uid)
        if before is None or not work.is_barred:
            return False
        return _released_at(before) == _released_at(work)


def _released_at(work: Work) -> str | None:
    return work.annotations.get(labels.RELEASED_AT)


def _judged(work: Work, rules: HoldRules, now_s: float) -> ReleaseNow | MayWait:
    """Judge a workload; if judging raises an unexpected exception, it is started."""
    try:
        return judge(work, rules, now_s)
    except Exception as fault:
        log.exception(
            "a held workload could not be judged; it is started",
            work=f"{work.namespace}/{work.name}",
        )
        return ReleaseNow(
            work,
            ReleaseReason.OPT_OUT,
            f"GreenSched could not judge it, see the controller's log: {fault!r}",
        )


def _may_ask_for_pauses(work: Work) -> bool:
    """Return whether a Job says that it is checkpointable, or its owner may say so for it."""
    return labels.CHECKPOINTABLE in work.annotations or work.owner is not None


def _due(reports: dict[str, tuple[Value, float]], monotonic_s: float) -> dict[str, Value]:
    """Return the reports that are due, and postpone each by `RESENT_AFTER_S`."""
    found = {uid: one for uid, (one, due_s) in reports.items() if monotonic_s >= due_s}
    reports |= {uid: (one, monotonic_s + RESENT_AFTER_S) for uid, one in found.items()}
    return found


def _has_changed(before: Work, now: Work) -> bool:
    """Return whether anything has changed that we do not write ourselves."""
    return before.wanted != now.wanted
