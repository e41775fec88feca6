"""Until when work may be held: the strictest bound, at its boundaries."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_operator.holding.hold_requests import HoldRequest
from greensched_operator.holding.holding import (
    LEAST_HOLD_S,
    HoldTerms,
    NotHeld,
    StartLimit,
    Unheld,
    hold_terms,
)
from greensched_operator.objects.cron_jobs import CronJob
from greensched_operator.objects.green_policy import GreenPolicy, Mode
from tests.operator.annotated_work import HOUR_S, NOW_S

# Of runs with this error, 99.5 % take at most a tenth longer than expected.
POLICY = GreenPolicy(mode=Mode.ENFORCE, runtime_error=math.log(1.1) / NormalDist().inv_cdf(0.995))
EXACT = GreenPolicy(mode=Mode.ENFORCE, runtime_error=0.0, start_delay_s=1.0)
# NOW_S is 22:13:20 UTC; the next whole hour begins 2800 s later.
HOURLY = CronJob("team", "nightly", "uid", {}, "0 * * * *", "", ())
ALONE = replace(HOURLY, may_overlap=False)
EVERY_MINUTE = replace(HOURLY, schedule="* * * * *")
TO_NEXT_RUN_S = 2800.0


def hold_request(**said: float | None) -> HoldRequest:
    """Return a hold request; times are told in seconds from the arrival."""

    def time(name: str) -> float | None:
        after_s = said.get(name)
        return None if after_s is None else NOW_S + after_s

    return HoldRequest(NOW_S, time("deadline_s"), time("start_by_s"), time("start_from_s"),
                said.get("runtime_s"))  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "policy", "cron_job", "wait_s", "bound"),
    [
        pytest.param(hold_request(deadline_s=6 * HOUR_S, runtime_s=HOUR_S), POLICY, None,
                     5 * HOUR_S - 660.0, StartLimit.DEADLINE, id="start-and-longer-runs-are-spare"),
        pytest.param(hold_request(deadline_s=HOUR_S, runtime_s=600.0), EXACT, None,
                     HOUR_S - 630.0, StartLimit.DEADLINE, id="what-the-releaser-needs-is-spare"),
        pytest.param(hold_request(start_by_s=HOUR_S), POLICY, None, HOUR_S, StartLimit.START_BY,
                     id="max-delay"),
        pytest.param(hold_request(deadline_s=6 * HOUR_S, start_by_s=HOUR_S, runtime_s=60.0),
            POLICY, None,
                     HOUR_S, StartLimit.START_BY, id="the-stricter-of-two"),
        pytest.param(hold_request(), GreenPolicy(default_delay_s=7200.0), None, 7200.0,
                     StartLimit.DEFAULT_DELAY, id="default-delay"),
        pytest.param(hold_request(start_by_s=HOUR_S), GreenPolicy(default_delay_s=60.0), None,
            HOUR_S,
                     StartLimit.START_BY, id="a-hold_request-goes-before-the-default"),
        pytest.param(hold_request(start_by_s=99 * HOUR_S), POLICY, None, 24 * HOUR_S,
            StartLimit.LONGEST_HOLD,
                     id="longest-hold"),
        pytest.param(hold_request(start_by_s=HOUR_S), POLICY, HOURLY, TO_NEXT_RUN_S - 60.0,
                     StartLimit.NEXT_RUN, id="before-the-next-run"),
        pytest.param(hold_request(start_by_s=HOUR_S, runtime_s=600.0), POLICY, ALONE,
                     TO_NEXT_RUN_S - 960.0, StartLimit.NEXT_RUN,
                     id="ended-before-the-next-run-where-runs-may-not-overlap"),
    ],
)  # fmt: skip
def test_the_strictest_bound_holds(
    asked: HoldRequest,
    policy: GreenPolicy,
    cron_job: CronJob | None,
    wait_s: float,
    bound: StartLimit,
) -> None:
    terms = hold_terms(asked, policy, cron_job)
    assert isinstance(terms, HoldTerms)
    assert terms.latest_start_s - NOW_S == pytest.approx(wait_s)
    assert terms.bound == bound


@pytest.mark.parametrize(
    ("start_by_s", "is_held"),
    [
        pytest.param(LEAST_HOLD_S, True, id="just-worth-it"),
        pytest.param(LEAST_HOLD_S - 0.001, False, id="not-worth-it"),
        pytest.param(0.0, False, id="nothing-to-wait"),
        pytest.param(-HOUR_S, False, id="past"),
    ],
)
def test_what_can_hardly_wait_is_not_held(start_by_s: float, is_held: bool) -> None:
    assert isinstance(hold_terms(hold_request(start_by_s=start_by_s), POLICY), HoldTerms) is is_held


@pytest.mark.parametrize(
    ("asked", "policy", "reason"),
    [
        pytest.param(hold_request(), POLICY, Unheld.NO_REQUEST, id="says-nothing"),
        pytest.param(hold_request(start_by_s=HOUR_S), GreenPolicy(mode=Mode.OFF), Unheld.POLICY_OFF,
                     id="policy-off"),
        pytest.param(HoldRequest(NOW_S, start_by_s=NOW_S + HOUR_S, run_now=True), POLICY,
            Unheld.RUN_NOW,
                     id="run-now"),
        pytest.param(HoldRequest(NOW_S, start_by_s=NOW_S + HOUR_S, faults=("odd",)), POLICY,
                     Unheld.BAD_ANNOTATION, id="a-fault-holds-nothing"),
        pytest.param(hold_request(deadline_s=HOUR_S, runtime_s=HOUR_S), POLICY, Unheld.NO_SLACK,
                     id="deadline-is-the-runtime"),
    ],
)  # fmt: skip
def test_why_it_is_not_held(asked: HoldRequest, policy: GreenPolicy, reason: Unheld) -> None:
    terms = hold_terms(asked, policy)
    assert isinstance(terms, NotHeld)
    assert terms.reason == reason


AFTER = (
    ", after 1h of runtime (default) and 11m for the start and for longer runs, so that 99.5 % of "
    "them end in time"
)


@pytest.mark.parametrize(("asked", "policy", "cron_job", "text"), [
    pytest.param(hold_request(deadline_s=HOUR_S), POLICY, None,
                 f"deadline leaves only 0s to wait{AFTER}", id="it-must-end"),
    pytest.param(hold_request(start_by_s=59.0), POLICY, None,
                 "max-delay or window leaves only 59s to wait", id="it-must-only-start"),
    pytest.param(hold_request(deadline_s=9 * HOUR_S), replace(POLICY, longest_hold_s=0.0), None,
                 "the policy's longest hold leaves only 0s to wait", id="nothing-is-held-long"),
    pytest.param(hold_request(start_by_s=HOUR_S), POLICY, ALONE,
                 f"its CronJob's next run leaves only 0s to wait{AFTER}", id="alone"),
    pytest.param(hold_request(start_by_s=HOUR_S), POLICY, EVERY_MINUTE,
                 "its CronJob's next run leaves only 0s to wait", id="beside-the-next-run"),
])  # fmt: skip
def test_the_runtime_is_named_only_where_it_leaves_no_time(
    asked: HoldRequest, policy: GreenPolicy, cron_job: CronJob | None, text: str
) -> None:
    terms = hold_terms(asked, policy, cron_job)
    assert isinstance(terms, NotHeld)
    assert (terms.reason, terms.text) == (Unheld.NO_SLACK, text)


def test_the_runtime_is_what_was_said_else_learned_else_the_default() -> None:
    learned = CronJob("team", "n", "uid", {}, "0 0 1 1 *", "", (50.0, 70.0, 60.0))
    said = hold_request(start_by_s=HOUR_S, runtime_s=10.0)
    found = [
        hold_terms(said, POLICY, learned),
        hold_terms(hold_request(start_by_s=HOUR_S), POLICY, learned),
        hold_terms(hold_request(start_by_s=HOUR_S), POLICY),
    ]
    told = [(each.runtime_s, each.runtime_from) for each in found if isinstance(each, HoldTerms)]
    median_s = pytest.approx((50.0 * 70.0 * 60.0) ** (1 / 3))
    assert told == [(10.0, "annotation"), (median_s, "past runs"), (3600.0, "default")]


def waits_s(policy: GreenPolicy, cron_job: CronJob | None = None) -> float:
    terms = hold_terms(hold_request(deadline_s=9 * HOUR_S, runtime_s=HOUR_S), policy, cron_job)
    assert isinstance(terms, HoldTerms)
    return terms.latest_start_s - NOW_S


def test_who_wants_to_be_surer_starts_earlier_and_who_knows_runtimes_later() -> None:
    usual = GreenPolicy(mode=Mode.ENFORCE)
    surer, unsure = replace(usual, on_time_target=0.9999), replace(usual, runtime_error=0.5)
    assert waits_s(unsure) < waits_s(surer) < waits_s(usual) < waits_s(EXACT)
    assert waits_s(usual) == pytest.approx(8 * HOUR_S - 300.0 - 0.674 * HOUR_S, abs=3.0)


def test_past_runs_that_are_alike_leave_more_time_to_wait_than_runs_that_differ() -> None:
    yearly = replace(HOURLY, schedule="0 0 1 1 *")

    def learned_s(*runtimes_s: float) -> float:
        terms = hold_terms(
            hold_request(deadline_s=9 * HOUR_S),
            GreenPolicy(mode=Mode.ENFORCE),
            replace(yearly, runtimes_s=runtimes_s),
        )
        assert isinstance(terms, HoldTerms)
        return terms.latest_start_s

    alike, apart = [3600.0] * 20, [1800.0, 7200.0] * 10
    assert learned_s(*apart) < learned_s(3600.0) < learned_s(*alike)


def test_a_third_of_the_time_from_its_window_to_its_latest_start_is_spare() -> None:
    terms = hold_terms(hold_request(start_by_s=4 * HOUR_S, start_from_s=HOUR_S), POLICY)
    assert isinstance(terms, HoldTerms)
    assert terms.spare_s == pytest.approx(HOUR_S)


SECONDS = st.one_of(st.none(), st.floats(-1e6, 1e7))


@given(SECONDS, SECONDS, SECONDS, st.one_of(st.none(), st.floats(0.001, 1e7)))
def test_held_work_always_ends_before_its_deadline(
    deadline_s: float | None,
    start_by_s: float | None,
    from_s: float | None,
    runtime_s: float | None,
) -> None:
    asked = hold_request(deadline_s=deadline_s, start_by_s=start_by_s, start_from_s=from_s,
                 runtime_s=runtime_s)  # fmt: skip
    terms = hold_terms(asked, POLICY)
    if isinstance(terms, NotHeld):
        return
    assert NOW_S <= terms.start_from_s <= terms.latest_start_s
    assert terms.latest_start_s - NOW_S <= POLICY.longest_hold_s
    if asked.deadline_s is not None:
        assert terms.latest_start_s + terms.runtime_s < asked.deadline_s
    if asked.start_by_s is not None:
        assert terms.latest_start_s <= asked.start_by_s


def test_a_window_that_opens_after_the_latest_start_lets_nothing_wait() -> None:
    asked = hold_request(start_from_s=2 * HOUR_S, start_by_s=8 * HOUR_S)
    told = hold_terms(asked, POLICY, HOURLY)
    assert isinstance(told, NotHeld) and told.reason == Unheld.NO_SLACK
    assert "its window opens at 2023-11-15T00:13:20Z, but " in told.text


@pytest.mark.parametrize("early_s", [0.0, 0.05, 60.0])
def test_a_run_seen_before_it_was_due_is_not_its_own_next_run(early_s: float) -> None:
    due_s = NOW_S + TO_NEXT_RUN_S
    asked = HoldRequest(due_s - early_s, start_by_s=due_s + 9 * HOUR_S, scheduled_s=due_s)
    terms = hold_terms(asked, POLICY, HOURLY)
    assert isinstance(terms, HoldTerms)
    assert terms.latest_start_s == due_s + HOUR_S - 60.0


def test_where_all_nodes_are_fast_only_a_learned_runtime_is_shorter() -> None:
    yearly = replace(HOURLY, schedule="0 0 1 1 *", runtimes_s=(7200.0,) * 3)
    policy = replace(POLICY, start_delay_s=0.0, runtime_error=0.0)

    def longest_s(cron_job: CronJob | None, runtime_s: float | None) -> float:
        asked = hold_request(deadline_s=8 * HOUR_S, runtime_s=runtime_s)
        terms = hold_terms(asked, policy, cron_job, slowest_speed=2.0)
        assert isinstance(terms, HoldTerms)
        return NOW_S + 8 * HOUR_S - 30.0 - terms.latest_start_s

    assert longest_s(yearly, None) == pytest.approx(3600.0)
    assert longest_s(None, 7200.0) == pytest.approx(7200.0), "as it was declared"


@pytest.mark.parametrize(
    ("speed", "learned", "wait_s"),
    [
        pytest.param(1.0, None, 8 * HOUR_S - 2230.0, id="a-reference-node"),
        pytest.param(0.5, None, 8 * HOUR_S - 4430.0, id="twice-as-slow-takes-twice-as-long"),
        pytest.param(0.5, HOURLY, TO_NEXT_RUN_S - 60.0, id="before-the-next-run-anyway"),
    ],
)
def test_a_deadline_is_kept_on_the_slowest_node_too(
    speed: float, learned: CronJob | None, wait_s: float
) -> None:
    asked = hold_request(deadline_s=8 * HOUR_S, runtime_s=2000.0)
    policy = replace(POLICY, start_delay_s=0.0)
    terms = hold_terms(asked, policy, learned, slowest_speed=speed)
    assert isinstance(terms, HoldTerms)
    assert terms.latest_start_s - NOW_S == pytest.approx(wait_s)
    assert terms.runtime_s == 2000.0
