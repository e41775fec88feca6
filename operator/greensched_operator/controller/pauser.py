"""Suspends running Jobs where a pause was chosen, and says so: the edge of `pausing`."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import structlog

from greensched_core.clock import Clock
from greensched_core.durations import format_duration
from greensched_core.signals.timestamps import format_timestamp
from greensched_core.units import percent
from greensched_operator.controller.outputs import Outputs
from greensched_operator.holding.judging import HoldRules, hold_request_of
from greensched_operator.holding.pause_terms import least_pause_s, may_pause
from greensched_operator.objects.green_policy import Mode
from greensched_operator.objects.workloads import Work
from greensched_operator.planning.cluster_state import RunningPod
from greensched_operator.planning.held_works import HeldWorks
from greensched_operator.planning.pausing import JobRunSegment, Pause, choose_pauses
from greensched_operator.planning.plan_words import grid_words
from greensched_operator.planning.start_planning import Planned, Situation
from greensched_operator.writing.outbox import Lane

log = structlog.get_logger()

PodsByOwner = Callable[[], Mapping[str, Sequence[RunningPod]]]
MOST_AT_ONCE = 800  # Jobs that one planning looks at, two or three milliseconds each

ZoneOf = Callable[[str], str | None]  # of a node


@dataclass(frozen=True, slots=True)
class _Seen:
    """A Job when it was last looked at."""

    at_s: float
    ran_s: float
    is_running: bool


class RunTimes:
    """How long Jobs have run since they were started or resumed, as far as we saw it.

    Object times are whole seconds of the machine's clock, and a Job counts as started while its
    pods wait for a node. So what is counted is the time in which all pods of a Job were seen to
    run, by our own clock. Who was not there to see it counts less work as done than was done: a
    pause is then shorter, and never too long.
    """

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}

    def see(self, works: Iterable[Work], now_s: float) -> None:
        """Look at all Jobs that go on; what is not among them is forgotten."""
        before, self._seen = self._seen, {}
        for work in works:
            last = before.get(work.uid, _Seen(now_s, 0.0, is_running=False))
            more_s = max(now_s - last.at_s, 0.0) if last.is_running else 0.0
            self._seen[work.uid] = _Seen(now_s, last.ran_s + more_s, work.is_running)

    def ran_s(self, uid: str) -> float:
        """Return how long a Job has run since it was started or resumed."""
        seen = self._seen.get(uid)
        return 0.0 if seen is None else seen.ran_s


class LookTurns:
    """Whose turn it is to be looked at, where more run than one planning can look at."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._planning = 0
        self._looked_at: dict[str, int] = {}  # in which planning, the last time

    def take(self, run_segments: Sequence[JobRunSegment]) -> list[JobRunSegment]:
        """Return what is looked at now: what was not for the longest."""
        self._planning += 1
        before = {each.work.uid: self._looked_at.get(each.work.uid, 0) for each in run_segments}
        taken = sorted(run_segments, key=lambda each: before[each.work.uid])[: self._most]
        self._looked_at = before | {each.work.uid: self._planning for each in taken}
        return taken


class Pauser:
    """Looks at what runs, and suspends what is better resumed later."""

    def __init__(
        self,
        works: HeldWorks,
        pods: PodsByOwner,
        zone_of: ZoneOf,
        outputs: Outputs,
        clock: Clock,
        rules_now: Callable[[], HoldRules],
    ) -> None:
        """`pods` are those on nodes, by the uid of the Job that they are of."""
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
        """Note what runs; to be called whenever that may have changed."""
        self._run_times.see(self._works.pausable.values(), self._clock.now())

    async def pause(self, rules: HoldRules, situation_now: Callable[[], Situation]) -> None:
        """Suspend what is better resumed later, by a plan that keeps the room of all else."""
        running = self._run_segments()
        if not running:
            return
        run_segments = self._turns.take(running)
        self._metrics.pauses.labels("put-off").inc(len(running) - len(run_segments))
        held_cores = sum(work.cpu_cores for work in self._works.held.values())
        try:
            situation = situation_now()
            # Each takes milliseconds, which releases and watches must not wait for.
            chosen = await asyncio.to_thread(
                choose_pauses, run_segments, rules, situation, held_cores
            )
        except Exception:  # our own fault: what runs goes on
            log.exception(
                "choosing pauses failed; running work goes on", workloads=len(run_segments)
            )
            self._metrics.fallbacks.labels("pausing-failed").inc()
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
            return  # it has changed, or ended: it is looked at again
        now_s = self._clock.now()
        if not may_still_pause(planned, self._rules_now(), now_s):
            self._metrics.pauses.labels("too-late").inc()
            return
        progress = replace(pause.progress, paused_at_s=now_s)
        text = why_paused(pause)
        if not await self._writer.pause(planned, progress, text):
            self._metrics.pauses.labels("refused").inc()
            return
        self._metrics.pauses.labels("paused").inc()
        self._recorder.paused(planned, situation)
        note = f"until {format_timestamp(round(planned.start_s))}: {text}"
        await self._writer.announce(work, planned.start_s, text)
        await self._writer.tell(work, "Paused", note)
        log.info("paused", work=f"{work.namespace}/{work.name}", until=planned.start_s)


def may_still_pause(planned: Planned, rules: HoldRules, now_s: float) -> bool:
    """Tell whether a pause that was chosen before is still to be: rules and the hour move on."""
    work = planned.waiting.work
    if rules.is_emergency_release or now_s >= planned.start_s:
        return False
    hold_request, _ = hold_request_of(work, rules)
    policy = rules.policy_for(work.namespace, hold_request.policy).policy
    latest_s = planned.waiting.terms.latest_start_s
    is_long_enough = now_s + least_pause_s(work, policy) <= latest_s
    return policy.mode == Mode.ENFORCE and may_pause(work, hold_request) and is_long_enough


def why_paused(pause: Pause) -> str:
    """Return why a Job is suspended, in a sentence."""
    chosen, terms = pause.planned.chosen, pause.planned.waiting.terms
    saved = percent(chosen.saving)
    latest = format_timestamp(round(terms.latest_start_s))
    left = format_duration(round(terms.runtime_s))
    return (
        f"paused: the remaining {left} then cost {saved} less, including the restart"
        f"{grid_words(chosen)}; latest start {latest} ({terms.bound})"
    )
