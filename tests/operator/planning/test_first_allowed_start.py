"""What users are told where a window, quiet hours or a budget allow no earlier start."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from greensched_operator.holding.judging import MayWait, judge
from greensched_operator.objects.green_policy import GreenPolicy, parse
from greensched_operator.planning.cluster_state import Zone
from greensched_operator.planning.outlooks import slot_begin
from greensched_operator.planning.plan_words import why_held
from greensched_operator.planning.situation import Planned, Situation
from greensched_operator.planning.start_planning import plan_starts
from greensched_policies.planning.outlook import SLOT_S
from tests.operator.annotated_work import HOUR_S, NOW_S, marks, rules, work_of
from tests.operator.situations import situation_of

BEGIN_S = slot_begin(NOW_S)
HOUR = 4  # slots
# The second hour is the cleanest, the fifth cleaner than now, all others are dirtier.
GRAMS = [200.0] * HOUR + [50.0] * HOUR + [300.0] * 2 * HOUR + [100.0] * HOUR + [300.0] * 30


def time_of_day(hours: float) -> str:
    """Return the UTC time so many hours after the present slot."""
    return f"{datetime.fromtimestamp(BEGIN_S, UTC) + timedelta(hours=hours):%H:%M}"


def quiet_until(hours: float) -> GreenPolicy:
    """Return a policy that is quiet from an hour ago until so many hours from now."""
    window = {"from": time_of_day(-1), "to": time_of_day(hours), "timeZone": "UTC"}
    found = parse({"metadata": {"name": "p"}, "spec": {"mode": "enforce", "quietHours": [window]}})
    assert found.faults == ()
    return found


ANY_TIME = parse({"metadata": {"name": "p"}, "spec": {"mode": "enforce"}})


def planned(
    policy: GreenPolicy, *, opens_h: float = -1.0, window_h: float = -1.0, longest: str = "8h"
) -> Planned:
    """Return the plan of half an hour's work, whose budget and window open in so many hours."""
    work = work_of("train", marks(NOW_S, NOW_S + 8 * HOUR_S, deadline=longest, runtime="30m"))
    found = judge(work, rules(policy), NOW_S)
    assert isinstance(found, MayWait)
    if window_h > 0.0:
        found = replace(found, terms=replace(found.terms, start_from_s=BEGIN_S + window_h * HOUR_S))
    [one], _ = plan_starts([found], in_cluster(opens_h))
    return one


def in_cluster(opens_h: float) -> Situation:
    now = situation_of(NOW_S, GRAMS, np.nan, Zone("A", 64.0, 5.0), jitter_s=120.0)
    return replace(now, opens_s=lambda _: BEGIN_S + opens_h * HOUR_S)


def hours_of(one: Planned) -> float:
    """Return when work starts, without its jitter, in hours from the present slot."""
    return (one.start_s - BEGIN_S) // SLOT_S / HOUR


LATER = "carbon -50 % against running now, 100 instead of 200"


@pytest.mark.parametrize(
    ("policy", "opens_h", "window_h", "starts_h", "words"),
    [
        (quiet_until(3.0), -1.0, -1.0, 4.0, LATER),
        (ANY_TIME, 2.0, -1.0, 4.0, LATER),
        (ANY_TIME, -1.0, 2.0, 4.0, LATER),
        (quiet_until(6.0), -1.0, -1.0, 6.0, "quiet hours end then: carbon +50 % against running"),
        (ANY_TIME, 6.0, -1.0, 6.0, "its namespace's budget begins anew then: carbon +50 %"),
        (ANY_TIME, -1.0, 6.0, 6.0, "its window opens then: carbon +50 % against running now"),
    ],
)
def test_the_best_start_they_leave_is_planned_and_told(
    policy: GreenPolicy, opens_h: float, window_h: float, starts_h: float, words: str
) -> None:
    found = planned(policy, opens_h=opens_h, window_h=window_h)
    assert hours_of(found) == starts_h
    assert why_held(found).replace("\N{MINUS SIGN}", "-").startswith(words)


def test_a_budget_that_begins_anew_too_late_holds_until_the_latest_start() -> None:
    found = planned(ANY_TIME, opens_h=9.0)
    assert found.start_s == found.waiting.terms.latest_start_s
    assert why_held(found).startswith("its namespace's budget would hold it beyond its latest")


def test_where_quiet_hours_do_not_end_work_starts_at_its_latest_start() -> None:
    """Until the clocks of one of the zones change, no hour is free; the simulator does the same."""
    summer_s = datetime.fromisoformat("2026-07-14T06:05:00+00:00").timestamp()
    windows = [{"from": "06:00", "to": "23:00", "timeZone": "Europe/Berlin"},
               {"from": "21:00", "to": "04:00", "timeZone": "UTC"}]  # fmt: skip
    policy = parse({"metadata": {"name": "p"}, "spec": {"mode": "enforce", "quietHours": windows}})
    assert policy.faults == ()
    work = work_of("train", marks(summer_s, summer_s + 4 * HOUR_S, deadline="6h", runtime="30m"))
    found = judge(work, rules(policy), summer_s)
    assert isinstance(found, MayWait)
    [one], _ = plan_starts([found], situation_of(summer_s, GRAMS, np.nan, Zone("A", 64.0, 5.0)))
    assert one.start_s == found.terms.latest_start_s
    assert why_held(one).startswith("quiet hours would hold it beyond its latest start")
