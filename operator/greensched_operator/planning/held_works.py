"""The work that we hold, what was judged of it and planned for it: state without input or output.

Level-triggered: whatever order events come in, what counts is how each object is now.
"""

from collections.abc import Container
from dataclasses import dataclass, field, replace
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
from greensched_operator.planning.start_planning import Planned

log = structlog.get_logger()

Value = TypeVar("Value")

RESENT_AFTER_S = 10.0  # a release that the watch does not show by then is sent again


@dataclass
class News:
    """What has changed since it was last taken."""

    arrived: dict[str, Work] = field(default_factory=dict)  # opted in, and not held
    ended: list[Work] = field(default_factory=list)  # of those seen before their end
    started: list[Work] = field(default_factory=list)  # by others; our mark is still on them
    marked: list[Work] = field(default_factory=list)  # of those, until our mark is off
    released: list[Work] = field(default_factory=list)  # by one of us, but not by this controller
    deleted: list[Work] = field(default_factory=list)  # while they were held
    over: dict[str, ReleaseNow] = field(
        default_factory=dict
    )  # whose condition still tells of a plan


class HeldWorks:
    """All work that opted in and has not ended, by uid."""

    def __init__(self, scheduler_names: frozenset[str]) -> None:
        self._schedulers = scheduler_names
        self.held: dict[str, Work] = {}
        self.planned: dict[str, Planned] = {}
        self.news = News()
        self._waiting: dict[str, MayWait] = {}
        self._unjudged: set[str] = set()
        self._going_on: dict[str, Work] = {}  # not held
        self.pausable: dict[str, Work] = {}  # of those: Jobs that may ask to be suspended
        self._gangs: frozenset[tuple[str, str]] = frozenset()  # that ran at the last look
        self._disowned: set[str] = set()  # held still, but without our mark
        self._released: dict[str, tuple[ReleaseNow, float]] = {}  # monotonic seconds of the sending
        # What is told of until it is mended, and until when it is not told of again.
        self._marked: dict[str, tuple[Work, float]] = {}
        self._over: dict[str, tuple[ReleaseNow, float]] = {}

    def __len__(self) -> int:
        return len(self.held)

    def put(self, work: Work) -> None:
        """An object is there or has changed."""
        is_ours = work.scheduler in self._schedulers or work.is_marked or work.is_left
        if not (is_ours or work.uid in self.held or work.uid in self._going_on):
            return
        if work.is_finished or work.is_leaving:
            self._end(work)
        elif work.is_held or self._is_unmarked(work):
            self._hold(work)
        else:
            self._go_on(work)

    def drop(self, uid: str) -> None:
        """An object is gone, or a pod has a node: what is to be told of its arrival still is."""
        arrived = self.news.arrived.get(uid)
        self._note_deletion(uid)
        self._forget(uid)
        self._go_on_no_more(uid)
        if arrived is not None:
            self.news.arrived[uid] = arrived

    def judge_all(self) -> None:
        """Have all judged anew: policies, CronJobs or the emergency release have changed."""
        self._unjudged = set(self.held)

    def judge_runs_of(self, cron_job: CronJob) -> None:
        """Have the runs of a CronJob judged anew: it has changed."""
        self._unjudged |= {
            uid
            for uid, work in self.held.items()
            if work.owner is not None
            and work.owner.kind == "CronJob"
            and (work.namespace, work.owner.name) == (cron_job.namespace, cron_job.name)
        }

    def judged(self, rules: HoldRules, now_s: float, monotonic_s: float) -> list[ReleaseNow]:
        """Return what is to be started now, what has just been judged so and what is due.

        What is sent stays held until the watch shows otherwise, and is sent again after a while.
        """
        self._released = {uid: (release, at_s) for uid, (release, at_s) in self._released.items()
                          if monotonic_s - at_s <= RESENT_AFTER_S}  # fmt: skip
        found: dict[str, ReleaseNow] = {}
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
        self._unjudged = set(found)  # until they are seen to have started
        for uid, one in self._waiting.items():
            latest_s = one.terms.latest_start_s
            planned = self.planned.get(uid)
            if now_s >= latest_s and uid not in found:
                found[uid] = at_its_latest(one.work, one.terms)
            elif planned is not None and self._is_due(planned, now_s) and uid not in found:
                reason = (
                    ReleaseReason.RESUMED if one.work.is_paused else ReleaseReason.PLANNED_START
                )
                found[uid] = ReleaseNow(one.work, reason, "its planned start has come")
        self._with_gangs(found)
        return [each for uid, each in found.items() if uid not in self._released]

    def with_mates(self, release: ReleaseNow) -> list[ReleaseNow]:
        """Return a start with those of its gang, without what was sent already."""
        found = {release.work.uid: release}
        self._with_gangs(found)
        return [each for uid, each in found.items() if uid not in self._released]

    def unplanned(self) -> list[MayWait]:
        """Return what may wait and has no plan yet."""
        return [
            one
            for uid, one in self._waiting.items()
            if uid not in self.planned and uid not in self._released
        ]

    def waiting(self) -> list[MayWait]:
        """Return all that may wait."""
        return [one for uid, one in self._waiting.items() if uid not in self._released]

    def plan(self, planned: Planned) -> None:
        """Note when a workload is to start, unless it has changed or gone since it was planned."""
        uid = planned.waiting.work.uid
        if self._waiting.get(uid) is planned.waiting:
            self.planned[uid] = planned

    def sent(self, release: ReleaseNow, monotonic_s: float) -> None:
        """Note that a release was sent."""
        self._released[release.work.uid] = release, monotonic_s

    def was_sent(self, uid: str) -> bool:
        """Tell whether a release of it is on its way."""
        return uid in self._released

    def take_news(self, monotonic_s: float) -> News:
        """Return what has changed, and begin anew; our mark is told of until it is off.

        So is a condition until it tells that the wait is over.
        """
        news, self.news = self.news, News()
        news.marked = list(_due(self._marked, monotonic_s).values())
        news.over |= _due(self._over, monotonic_s)
        return news

    def next_due_s(self) -> float:
        """Return when the next workload is to start, infinity where none waits."""
        times = (self._due_s(uid, one) for uid, one in self._waiting.items()
                 if uid not in self._released)  # fmt: skip
        return min(times, default=float("inf"))

    def pods(self) -> list[str]:
        """Return the uids of all pods that opted in, held or not, without a node."""
        works = (*self.held.items(), *self._going_on.items())
        return [uid for uid, work in works if work.kind == WorkKind.POD]

    def known(self) -> frozenset[str]:
        """Return the uids of all that opted in and has not ended."""
        return frozenset(self.held.keys() | self._going_on.keys())

    def expected_s(self, uid: str, rules: HoldRules) -> float | None:
        """Return for how long what runs does so, as it is planned; None for what has not opted in.

        In seconds from when it was started, or resumed.
        """
        work = self._going_on.get(uid)
        return None if work is None else left_to_run_s(work, rules)

    @staticmethod
    def _is_due(planned: Planned, now_s: float) -> bool:
        """Tell whether a planned start has come, and nothing of an earlier run segment runs on."""
        return now_s >= planned.start_s and not planned.waiting.work.is_ending

    def _due_s(self, uid: str, one: MayWait) -> float:
        planned = self.planned.get(uid)
        latest_s = one.terms.latest_start_s
        if planned is None or one.work.is_ending:
            return latest_s
        return min(planned.start_s, latest_s)

    def _hold(self, work: Work) -> None:
        self._go_on_no_more(work.uid)
        self.news.over.pop(work.uid, None)
        if not work.is_marked:
            self._disowned.add(work.uid)
        before = self.held.get(work.uid)
        self.held[work.uid] = work
        if before is None or _says_else(before, work):
            self._unjudged.add(work.uid)
            self._waiting.pop(work.uid, None)
            self.planned.pop(work.uid, None)
        elif work.uid in self._waiting:
            # Only what we wrote ourselves has changed: the judgement stands, on the newer object.
            self._refresh(work)

    def _refresh(self, work: Work) -> None:
        old = self._waiting[work.uid]
        fresh = replace(old, work=work)
        self._waiting[work.uid] = fresh
        planned = self.planned.get(work.uid)
        if planned is not None:
            self.planned[work.uid] = planned.on(fresh)

    def _go_on(self, work: Work) -> None:
        if self._was_released_by_others(work):
            self.news.released.append(work)
        self._end_wait(work)
        self._forget(work.uid)
        if work.is_marked and not work.is_barred:
            if work.uid not in self._marked:
                self.news.started.append(work)
            self._marked[work.uid] = work, float("-inf")
        else:
            self._marked.pop(work.uid, None)
        if work.uid not in self._going_on and not work.is_stopped and not work.is_served:
            self.news.arrived[work.uid] = work
        self._going_on[work.uid] = work
        if work.is_ours and not work.is_stopped and _may_ask_for_pauses(work):
            self.pausable[work.uid] = work
        else:
            self.pausable.pop(work.uid, None)

    def _end_wait(self, work: Work) -> None:
        """Have told that a planned wait is over, for as long as the condition says otherwise."""
        if not work.tells_plan:
            self._over.pop(work.uid, None)
        elif work.uid not in self._over:
            ours, _ = self._released.get(work.uid, (None, 0.0))
            release = ReleaseNow(work, reason_of(work), "")
            if ours is not None and ours.reason is release.reason:
                release = ours
            self.news.over[work.uid] = release  # a pod may have a node before the news are taken
            self._over[work.uid] = release, float("-inf")

    def _was_released_by_others(self, work: Work) -> bool:
        """Tell whether it is seen for the first time to have been started, and not by us."""
        is_known = work.uid in self._going_on or work.uid in self._released
        has_paused = labels.PAUSED_AT in work.annotations
        return work.was_released and not (is_known or has_paused or work.is_stopped)

    def _go_on_no_more(self, uid: str) -> bool:
        self.news.arrived.pop(uid, None)
        self.pausable.pop(uid, None)
        self._marked.pop(uid, None)
        self._over.pop(uid, None)
        return self._going_on.pop(uid, None) is not None

    def _end(self, work: Work) -> None:
        if work.is_finished:
            self._end_wait(work)
        else:
            self._note_deletion(work.uid)
        self._forget(work.uid)
        if self._go_on_no_more(work.uid) and work.is_finished:
            self.news.ended.append(work)

    def _note_deletion(self, uid: str) -> None:
        """Have told what goes while it is held; of a Workload of Kueue's its Job may go on."""
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
            for work in self._going_on.values()
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
        """Add those that share a gang with what is started."""
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
        """Tell whether our mark was just taken off; with a release, he stopped it again himself."""
        before = self.held.get(work.uid)
        if before is None or not work.is_barred:
            return False
        return _released_at(before) == _released_at(work)


def _released_at(work: Work) -> str | None:
    return work.annotations.get(labels.RELEASED_AT)


def _judged(work: Work, rules: HoldRules, now_s: float) -> ReleaseNow | MayWait:
    """Judge a workload; one that our own fault keeps from being judged is not held."""
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
    """Tell whether a Job says that it is saved, or its CronJob may say so for it."""
    return labels.CHECKPOINTABLE in work.annotations or work.owner is not None


def _due(told: dict[str, tuple[Value, float]], monotonic_s: float) -> dict[str, Value]:
    """Return what is to be told of again, and keep it quiet for a while from now on."""
    found = {uid: one for uid, (one, quiet_until_s) in told.items() if monotonic_s >= quiet_until_s}
    told |= {uid: (one, monotonic_s + RESENT_AFTER_S) for uid, one in found.items()}
    return found


def _says_else(before: Work, now: Work) -> bool:
    """Tell whether anything but what we write ourselves has changed."""
    return before.wanted != now.wanted
