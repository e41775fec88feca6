"""Reports work that is not held: why, what mode shadow would do, and how long it ran."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import structlog

from greensched_core import labels
from greensched_core.clock import Clock
from greensched_core.signals.timestamps import format_timestamp
from greensched_operator.controller.outputs import Outputs
from greensched_operator.holding.holding import NotHeld, Unheld, not_ours
from greensched_operator.holding.judging import HoldRules, MayWait, ReleaseNow, terms_of
from greensched_operator.objects.cron_jobs import with_runtime
from greensched_operator.objects.green_policy import Mode
from greensched_operator.objects.release_patch import ReleaseReason, reason_of
from greensched_operator.objects.workloads import Work
from greensched_operator.planning.news import News
from greensched_operator.planning.plan_words import both_sides
from greensched_operator.planning.situation import Planned, Situation
from greensched_operator.planning.start_planning import plan_starts
from greensched_operator.runtime.planning_thread import in_thread
from greensched_operator.writing.metrics import ControllerError
from greensched_operator.writing.outbox import Lane

log = structlog.get_logger()

_OLD_S = 120.0  # wall seconds: older work was reported before this process started
_REPORTED = frozenset({Unheld.BAD_ANNOTATION, Unheld.NO_SLACK})


class Arrivals:
    """Reports to users on work that runs immediately, by events and conditions."""

    def __init__(
        self, outputs: Outputs, wall: Clock, speed_of_run: Callable[[str], float | None]
    ) -> None:
        """`speed_of_run` returns the mean speed of a Job's nodes; None if it is not known."""
        self._speed_of_run = speed_of_run
        self._writer = outputs.writer
        self._outbox = outputs.outbox
        self._recorder = outputs.recorder
        self._metrics = outputs.metrics
        self._wall = wall

    async def process(
        self,
        news: News,
        rules: HoldRules,
        situation: Callable[[Sequence[Planned]], Situation],
    ) -> None:
        """Report what has changed, and learn runtimes from it."""
        for work in news.ended:
            with self._isolated(work):
                self._learn(work, rules)
                self._recorder.ended(work)
        for work in news.deleted:
            with self._isolated(work):
                self._recorder.deleted(work)
        for work in news.marked:
            self._outbox.put(work.uid, 0.0, partial(self._unmark, work))
        for work in news.started:
            with self._isolated(work):
                if labels.PAUSED_AT not in work.annotations:
                    self._recorder.released(ReleaseNow(work, ReleaseReason.OTHERS, ""))
        for work in news.released:
            with self._isolated(work):
                if self._recorder.released_by_others(work):
                    release = ReleaseNow(work, reason_of(work), "")
                    self._put_event(work, "Released", _why(release))
        for release in news.over.values():
            settle = partial(self._settle, release)
            self._outbox.put(f"{release.work.uid}/over", float("inf"), settle, Lane.PLAN)
        shadowed: list[MayWait] = []
        for work in news.arrived.values():
            if work.created_s is not None and self._wall.now() - work.created_s > _OLD_S:
                continue
            with self._isolated(work):
                shadowed += self._explain(work, rules)
        if shadowed:
            with self._isolated(shadowed[0].work):
                await self._plan_shadow(shadowed, situation([]))

    async def _plan_shadow(self, shadowed: Sequence[MayWait], now: Situation) -> None:
        """Report and record the starts that mode shadow would plan."""
        planned, _ = await in_thread(plan_starts, shadowed, now)
        for one in planned:
            self._report_shadow(one)
            self._recorder.planned(one, now, is_shadow=True)

    def _explain(self, work: Work, rules: HoldRules) -> list[MayWait]:
        """Report why a workload is not held; return it where mode shadow would hold it."""
        terms, resolved = terms_of(work, rules)
        if resolved.fault:
            self._put_event(work, "PolicyFault", resolved.fault, is_warning=True)
        if isinstance(terms, NotHeld):
            self._metrics.unheld.labels(terms.reason).inc()
            if terms.reason in _REPORTED:
                self._put_event(work, "NotHeld", terms.text, is_warning=True)
            return []
        if foreign := not_ours(work):
            self._metrics.unheld.labels(Unheld.NOT_OURS).inc()
            self._put_event(work, "NotHeld", foreign, is_warning=True)
            return []
        is_shadowed = resolved.policy.mode == Mode.SHADOW and not work.is_marked
        return [MayWait(work, terms, resolved.policy)] if is_shadowed else []

    @contextmanager
    def _isolated(self, work: Work) -> Iterator[None]:
        """Log an unexpected exception, so that it affects only the reports on one workload."""
        try:
            yield
        except Exception:  # the workload runs anyway; only a report is lost
            log.exception(
                "a report failed; the workload runs", work=f"{work.namespace}/{work.name}"
            )
            self._metrics.fallbacks.labels(ControllerError.ARRIVAL_FAILED).inc()

    def _report_shadow(self, planned: Planned) -> None:
        if planned.is_now:
            return
        start = format_timestamp(round(planned.start_s))
        self._put_event(
            planned.waiting.work,
            "WouldHold",
            f"mode shadow: it would be held until {start}: {both_sides(planned.chosen)}",
        )

    def _put_event(self, work: Work, reason: str, note: str, *, is_warning: bool = False) -> None:
        async def send() -> None:
            await self._writer.create_event(work, reason, note, is_warning=is_warning)

        self._outbox.put(f"{work.uid}/{reason}", float("inf"), send)

    async def _unmark(self, work: Work) -> bool:
        """Remove our mark from work that somebody else has started; return False to retry."""
        return await self._writer.unmark(work)

    async def _settle(self, release: ReleaseNow) -> bool:
        """Write why the wait is over into the condition of the planned start."""
        return await self._writer.settle(release.work, release.reason, _why(release))

    def _learn(self, work: Work, rules: HoldRules) -> None:
        owner = work.owner
        if owner is None or owner.kind != "CronJob":
            return
        cron_job = rules.cron_job(work.namespace, owner.name)
        if cron_job is None or work.started_s is None or work.ended_s is None:
            return
        if labels.PAUSED_AT in work.annotations:
            return  # its times cover only the run after the last pause
        speed = self._speed_of_run(work.uid)
        if speed is None:
            run = f"{work.namespace}/{work.name}"
            log.info("runtime not learned: nobody saw on which node it ran", work=run)
            return
        # Object times are whole seconds.
        runtime_s = max(work.ended_s - work.started_s, 0.5) * speed

        async def send() -> None:
            runtimes = with_runtime(cron_job.runtimes_s, runtime_s)
            await self._writer.remember_runtimes(work.namespace, cron_job.name, runtimes)

        self._outbox.put(f"{cron_job.uid}/{work.uid}", float("inf"), send)


def _why(release: ReleaseNow) -> str:
    """Return why work was started; a release by others has no text, so name who started it."""
    if release.text:
        return f"{release.reason}: {release.text}"
    by = {
        ReleaseReason.RUN_NOW: "greensched release",
        ReleaseReason.OTHERS: "somebody else",
        ReleaseReason.RELEASER: "the releaser",
        ReleaseReason.UNINSTALL: "helm uninstall",
    }
    return f"{release.reason}: started by {by.get(release.reason, 'the operator')}"
