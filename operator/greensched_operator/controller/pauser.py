"""Suspends the running Jobs that `planning.pausing` chooses, and reports it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import structlog

from greensched_core.clock import Clock
from greensched_core.durations import format_duration
from greensched_core.signals.timestamps import format_timestamp
from greensched_operator.controller.outputs import Outputs
from greensched_operator.holding.judging import HoldRules, hold_request_of
from greensched_operator.holding.pause_terms import least_pause_s, may_pause
from greensched_operator.objects.green_policy import Mode
from greensched_operator.objects.workloads import Work
from greensched_operator.planning.cluster_state import RunningPod
from greensched_operator.planning.held_works import HeldWorks
from greensched_operator.planning.pausing import JobRunSegment, Pause, choose_pauses
from greensched_operator.planning.plan_words import both_sides, grid_words
from greensched_operator.planning.situation import Planned, Situation
from greensched_operator.runtime.planning_thread import in_thread
from greensched_operator.writing.metrics import ControllerError, PauseOutcome
from greensched_operator.writing.outbox import Lane

log = structlog.get_logger()

PodsByOwner = Callable[[], Mapping[str, Sequence[RunningPod]]]
MOST_AT_ONCE = 800  # Jobs that one planning considers, 2 to 3 ms each

ZoneOf = Callable[[str], str | None]  # of a node


@dataclass(frozen=True, slots=True)
class _Seen:
    """A Job when it was last seen."""

    at_s: float
    ran_s: float
    is_running: bool


class RunTimes:
    """How long Jobs have run since their start or resumption, as seen by this controller.

    Object times are whole seconds of the machine's clock, and a Job counts as started while its
    pods wait for a node. So this counts the time, by our clock, in which all pods of a Job were
    seen running. A controller that started later counts less than was done; pauses are then
    shorter, never too long.
    """

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}

    def see(self, works: Iterable[Work], now_s: float) -> None:
        """Update the run times of all unheld Jobs; forget all others."""
        before, self._seen = self._seen, {}
        for work in works:
            last = before.get(work.uid, _Seen(now_s, 0.0, is_running=False))
            more_s = max(now_s - last.at_s, 0.0) if last.is_running else 0.0
            self._seen[work.uid] = _Seen(now_s, last.ran_s + more_s, work.is_running)

    def ran_s(self, uid: str) -> float:
        """Return how long a Job has run since its start or resumption, in seconds."""
        seen = self._seen.get(uid)
        return 0.0 if seen is None else seen.ran_s


class LookTurns:
    """Chooses which Jobs to consider if more run than one planning can consider."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._planning = 0
        self._looked_at: dict[str, int] = {}  # by uid, the number of the last planning

    def take(self, run_segments: Sequence[JobRunSegment]) -> list[JobRunSegment]:
        """Return the Jobs to consider now: those not considered for the longest time."""
        self._planning += 1
        before = {each.work.uid: self._looked_at.get(each.work.uid, 0) for each in run_segments}
        taken = sorted(run_segments, key=lambda each: before[each.work.uid])[: self._most]
        self._looked_at = before | {each.work.uid: self._planning for each in taken}
        return taken


class Pauser:
    """Considers running Jobs, and suspends those that are better resumed later."""

    def __init__(
        self,
        works: HeldWorks,
        pods: PodsByOwner,
        zone_of: ZoneOf,
        outputs: Outputs,
        clock: Clock,
        rules_now: Callable[[], HoldRules],
    ) -> None:
        """Take `pods`, which returns the pods on nodes by the uid of their Job."""
        self._works = works
        self._pods = pods
        self._zone_of = zone_of
        self._outbox = outputs.outbox
        self._writer = outputs.writer
        self._recorder = outputs.recorder
        self._metrics = outputs.metrics
        self._clock = clock
        self._rules_now = rules_now
        self._run_times = RunTimes()
        self._turns = LookTurns(MOST_AT_ONCE)

    def look(self) -> None:
        """Record which Jobs run; call it whenever that may have changed."""
        self._run_times.see(self._works.pausable.values(), self._clock.now())

    async def pause(self, rules: HoldRules, situation_now: Callable[[], Situation]) -> None:
        """Suspend Jobs that are better resumed later; cores of other work stay reserved."""
        running = self._run_segments()
        if not running:
            return
        run_segments = self._turns.take(running)
        self._metrics.pauses.labels(PauseOutcome.PUT_OFF).inc(len(running) - len(run_segments))
        held_cores = sum(work.cpu_cores for work in self._works.held.values())
        try:
            situation = situation_now()
            chosen = await in_thread(choose_pauses, run_segments, rules, situation, held_cores)
        except Exception:  # running Jobs keep running
            log.exception(
                "choosing pauses failed; running work goes on", workloads=len(run_segments)
            )
            self._metrics.fallbacks.labels(ControllerError.PAUSING_FAILED).inc()
            return
        for pause in chosen:
            uid = pause.planned.waiting.work.uid
            self._outbox.put(uid, float("inf"), partial(self._send, pause, situation), Lane.PLAN)

    def _run_segments(self) -> list[JobRunSegment]:
        if not self._works.pausable:
            return []
        found, pods = [], self._pods()
        for uid, work in self._works.pausable.items():
            own = tuple(pods.get(uid, ()))
            zones = {self._zone_of(pod.node) for pod in own}
            if work.is_running and len(zones) == 1 and (zone := zones.pop()) is not None:
                found.append(JobRunSegment(work, self._run_times.ran_s(uid), zone, own))
        return found

    async def _send(self, pause: Pause, situation: Situation) -> None:
        planned, work = pause.planned, pause.planned.waiting.work
        if self._works.pausable.get(work.uid) != work:
            return  # it has changed or ended; the next planning considers it again
        now_s = self._clock.now()
        if not may_still_pause(planned, self._rules_now(), now_s):
            self._metrics.pauses.labels(PauseOutcome.TOO_LATE).inc()
            return
        progress = replace(pause.progress, paused_at_s=now_s)
        text = why_paused(pause)
        if not await self._writer.pause(planned, progress, text):
            self._metrics.pauses.labels(PauseOutcome.REFUSED).inc()
            return
        self._metrics.pauses.labels(PauseOutcome.PAUSED).inc()
        self._recorder.paused(planned, situation)
        note = f"until {format_timestamp(round(planned.start_s))}: {text}"
        await self._writer.announce(work, planned.start_s, text)
        await self._writer.create_event(work, "Paused", note)
        log.info("paused", work=f"{work.namespace}/{work.name}", until=planned.start_s)


def may_still_pause(planned: Planned, rules: HoldRules, now_s: float) -> bool:
    """Return whether a pause chosen earlier is still allowed: rules or time may have changed."""
    work = planned.waiting.work
    if rules.is_emergency_release or now_s >= planned.start_s:
        return False
    hold_request, _ = hold_request_of(work, rules)
    policy = rules.policy_for(work.namespace, hold_request.policy).policy
    latest_s = planned.waiting.terms.latest_start_s
    is_long_enough = now_s + least_pause_s(work, policy) <= latest_s
    return policy.mode == Mode.ENFORCE and may_pause(work, hold_request) and is_long_enough


def why_paused(pause: Pause) -> str:
    """Return a sentence that says why a Job is suspended."""
    chosen, terms = pause.planned.chosen, pause.planned.waiting.terms
    latest = format_timestamp(round(terms.latest_start_s))
    left = format_duration(round(terms.runtime_s))
    return (
        f"paused: {both_sides(chosen)}{grid_words(chosen)}; {left} left, restart included; "
        f"latest start {latest} ({terms.bound})"
    )
