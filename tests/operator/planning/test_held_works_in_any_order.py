"""Whatever happens in whatever order: nothing of ours is held beyond its latest start, nothing of
a user's is started, gangs start together, and the same events make the same starts.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from greensched_core import labels
from greensched_core.clock import ManualClock
from greensched_core.signals.timestamps import format_timestamp
from greensched_operator.holding.holding import margin_s
from greensched_operator.objects.green_policy import BUILT_IN
from greensched_operator.objects.workloads import WorkKind
from greensched_operator.planning.held_works import RESENT_AFTER_S, HeldWorks
from tests.operator.annotated_work import HOUR_S, NOW_S, marks, rules, work_of

NAMES = tuple("abcdef")
GANGS = {"a": "ring", "b": "ring"}
HELD, UNMARKED, HIS, RUNS, GONE = "held", "unmarked", "his", "runs", "gone"


def empty() -> HeldWorks:
    return HeldWorks(frozenset({labels.SCHEDULER_NAME}))


@dataclass
class Cluster:
    """Objects as the API server has them, and a controller that may die and come back."""

    clock: ManualClock = field(default_factory=lambda: ManualClock(NOW_S))
    works: HeldWorks = field(default_factory=empty)
    states: dict[str, str] = field(default_factory=dict)
    deadlines_h: dict[str, int] = field(default_factory=dict)
    is_api_down: bool = False
    started: list[tuple[str, str]] = field(default_factory=list)

    def show(self, name: str, state: str) -> None:
        """Have an object in a state, and the watch tell of it."""
        self.states[name] = state
        self._tell(name)

    def _tell(self, name: str) -> None:
        state = self.states[name]
        if state == GONE:
            self.works.drop(name)
            return
        said = marks(deadline=f"{self.deadlines_h[name]}h")
        if state != HELD:
            del said[labels.LATEST_START]
        if state == HIS:
            said[labels.RELEASED_AT] = format_timestamp(NOW_S)
        kind = WorkKind.JOB if state == HIS or NAMES.index(name) % 3 else WorkKind.POD
        stopped, gang = state != RUNS, GANGS.get(name, "")
        self.works.put(work_of(name, said, kind=kind, is_stopped=stopped, gang=gang))

    def restart(self) -> None:
        """Have a new controller, which is told of all there is."""
        self.works = empty()
        for name in self.states:
            self._tell(name)

    def turn(self) -> set[str]:
        """Start what is judged so; return what is started."""
        now_s = self.clock.now()
        found = self.works.judged(rules(), now_s, now_s)
        for each in found:
            name = each.work.uid
            self.works.sent(each, now_s)
            if not self.is_api_down:
                assert self.states[name] in (HELD, UNMARKED), "it was not ours to start"
                self.started.append((name, each.reason))
                self.show(name, RUNS)
        return {each.work.uid for each in found}

    def latest_s(self, name: str) -> float:
        """Return until when a workload may be held."""
        spare_s = margin_s(BUILT_IN, HOUR_S, BUILT_IN.runtime_error)
        return NOW_S + (self.deadlines_h[name] - 1) * HOUR_S - spare_s


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("arrive"), st.sampled_from(NAMES), st.integers(2, 24)),
        st.tuples(st.sampled_from([UNMARKED, HIS, RUNS, GONE]), st.sampled_from(NAMES), st.just(0)),
        st.tuples(st.just("pass"), st.just(""), st.integers(1, 600)),  # minutes
        st.tuples(st.sampled_from(["restart", "api down", "api up", "rejudge"]), st.just(""),
                  st.just(0)),
    ),
    max_size=30,
)  # fmt: skip
Step = tuple[str, str, int]


def play(steps: list[Step]) -> Cluster:
    """Take steps, with a turn after each, and hold each turn to its promise."""
    cluster = Cluster()
    for what, name, number in steps:
        if what == "arrive":
            if name not in cluster.states:
                cluster.deadlines_h[name] = number
                cluster.show(name, HELD)
        elif name:
            known = cluster.states.get(name)
            if known in (HELD, UNMARKED) or (known is not None and what == GONE):
                cluster.show(name, what)
        elif what == "pass":
            cluster.clock.advance(number * 60.0)
        elif what == "restart":
            cluster.restart()
        elif what == "rejudge":
            cluster.works.judge_all()
        else:
            cluster.is_api_down = what == "api down"
        released = cluster.turn()
        assert_turn_kept(cluster, released)
    return cluster


def assert_turn_kept(cluster: Cluster, released: set[str]) -> None:
    """Have nothing held that is due, but what was sent and not taken."""
    ring = {name for name in GANGS if cluster.works.held.get(name)}
    assert not ring or not released & set(GANGS) or cluster.is_api_down
    if cluster.is_api_down:
        return
    cluster.clock.advance(RESENT_AFTER_S + 0.1)
    cluster.turn()
    for name, state in cluster.states.items():
        is_due = cluster.clock.now() >= cluster.latest_s(name)
        assert state != UNMARKED
        assert state != HELD or not is_due


@given(STEPS)
def test_nothing_is_held_beyond_its_latest_start_and_nothing_of_users_is_started(
    steps: list[Step],
) -> None:
    cluster = play(steps)
    his = {name for name, state in cluster.states.items() if state == HIS}
    cluster.is_api_down = False
    cluster.clock.advance(30 * HOUR_S)
    cluster.turn()
    assert set(cluster.states.values()) <= {RUNS, GONE, HIS}
    assert his == {name for name, state in cluster.states.items() if state == HIS}
    assert len(cluster.works.held) == 0


@given(STEPS)
def test_the_same_events_make_the_same_starts(steps: list[Step]) -> None:
    assert play(steps).started == play(steps).started
