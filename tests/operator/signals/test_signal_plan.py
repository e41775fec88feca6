"""Whom to ask next: the order, rests, last good values before the static table."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_operator.providers.answers import (
    Answer,
    FaultReason,
    Interval,
    ProviderFault,
    carbon_answer,
    price_answer,
)
from greensched_operator.providers.catalogue import Provider
from greensched_operator.providers.file import File
from greensched_operator.providers.static import Static
from greensched_operator.providers.uk_carbon_intensity import UkCarbonIntensity
from greensched_operator.signals.plan import (
    SignalPlan,
    answered,
    checked_answer,
    failed,
    interval_s,
    replanned,
)

NOW, HOUR, DAY = 1_768_824_600.0, 3_600.0, 86_400.0
FIRST, SECOND, STATIC = UkCarbonIntensity(1), UkCarbonIntensity(2), Static()
DOWN = ProviderFault(FaultReason.UNREACHABLE, "gone")
PLAN = SignalPlan((FIRST, SECOND, STATIC), 900.0)


def answer(start: float = NOW, hours: float = 24.0) -> Answer:
    slots = [
        Interval(start + h * HOUR, start + (h + 1) * HOUR, 100.0 + h) for h in range(int(hours))
    ]
    return carbon_answer(slots, "a test")


def asked(
    plan: SignalPlan, now: float, working: set[Provider]
) -> tuple[SignalPlan, list[Provider]]:
    """Return the plan after a turn at `now`, and who was asked in it."""
    order = []
    while (provider := plan.next_provider(now)) is not None:
        order.append(provider)
        assert len(order) <= len(plan.providers), "a turn asks each provider once at most"
        if provider in working:
            plan = answered(plan, provider, answer(now), now, 0.0)
        else:
            plan = failed(plan, provider, DOWN, now, 0.0)
    return plan, order


def test_the_first_provider_is_asked_and_then_left_alone_for_the_interval() -> None:
    plan, order = asked(PLAN, NOW, {FIRST, SECOND, STATIC})
    assert order == [FIRST]
    assert plan.due_at(NOW) == NOW + 900
    assert asked(plan, NOW + 899, {FIRST})[1] == []
    assert asked(plan, NOW + 900, {FIRST})[1] == [FIRST]
    assert plan.is_served_by_first()


def test_the_next_one_serves_while_the_first_rests_and_the_first_is_asked_again() -> None:
    plan, order = asked(PLAN, NOW, {SECOND, STATIC})
    assert order == [FIRST, SECOND]
    assert plan.due_at(NOW) == NOW + 60
    plan, order = asked(plan, NOW + 60, {SECOND})
    assert order == [FIRST], "the second one's answer is still good"
    plan, order = asked(plan, plan.due_at(NOW + 60), {FIRST, SECOND})
    assert order == [FIRST]
    assert plan.is_served_by_first()


def test_rests_double_to_an_hour() -> None:
    plan, now, rests = PLAN, NOW, []
    for _ in range(9):
        plan = failed(plan, FIRST, DOWN, now, 0.0)
        rests.append(plan.failures[FIRST].retry_at - now)
        now = plan.failures[FIRST].retry_at
    assert rests == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]


def test_a_refused_key_is_tried_again_within_a_quarter_of_an_hour() -> None:
    plan, now = PLAN, NOW
    for _ in range(5):
        plan = failed(plan, FIRST, ProviderFault(FaultReason.UNAUTHORISED, "no"), now, 0.0)
        rest_s, now = plan.failures[FIRST].retry_at - now, plan.failures[FIRST].retry_at
    assert rest_s == 900


def test_a_rate_limit_is_kept_to() -> None:
    limit = ProviderFault(FaultReason.RATE_LIMITED, "slow down", retry_after_s=7_200.0)
    plan = failed(PLAN, FIRST, limit, NOW, 0.0)
    assert plan.failures[FIRST].retry_at == NOW + 7_200


def test_last_good_values_serve_before_the_static_table_and_for_a_day_only() -> None:
    plan, _ = asked(PLAN, NOW, {FIRST})
    plan, order = asked(plan, NOW + 900, {STATIC})
    assert order == [FIRST, SECOND]
    assert plan.is_last_good()
    assert plan.good(NOW + DAY) is not None
    assert plan.good(NOW + DAY + 1) is None
    plan, order = asked(plan, NOW + DAY + 1, {STATIC})
    assert order[-1] is STATIC
    assert not plan.is_last_good()


def test_the_static_table_serves_where_nobody_ever_answered() -> None:
    plan, order = asked(PLAN, NOW, {STATIC})
    assert order == [FIRST, SECOND, STATIC]
    held = plan.good(NOW)
    assert held is not None
    assert held.provider == STATIC


def test_a_static_table_named_first_is_asked_first() -> None:
    plan = SignalPlan((STATIC, FIRST), 900.0)
    assert asked(plan, NOW, {STATIC, FIRST})[1] == [STATIC]


def test_the_longer_of_two_intervals_counts_and_chance_only_adds() -> None:
    assert interval_s(SignalPlan((), 60.0), FIRST) == FIRST.least_interval_s
    assert interval_s(SignalPlan((), 7_200.0), FIRST) == 7_200
    late = answered(PLAN, FIRST, answer(), NOW, 0.999).held
    assert late is not None
    assert NOW + 900 < late.due_at < NOW + 991


def test_an_edit_keeps_what_still_holds_and_drops_what_a_removed_provider_said() -> None:
    plan, _ = asked(PLAN, NOW, {SECOND})
    kept = replanned(plan, (SECOND,), 900.0)
    assert kept.held == plan.held
    assert kept.failures == {}
    assert kept.next_provider(NOW) is None
    other = replanned(plan, (FIRST, File("a.csv", "v")), 900.0)
    assert other.held is None
    assert other.next_provider(NOW) == FIRST, "after an edit none rests"
    assert replanned(plan, (), 900.0).due_at(NOW) == math.inf


@pytest.mark.parametrize(
    ("late_s", "reason"),
    [
        pytest.param(0.0, None, id="runs"),
        pytest.param(HOUR, None, id="late-by-an-hour"),
        pytest.param(HOUR + 1, FaultReason.TOO_OLD, id="late-by-more"),
        pytest.param(DAY, FaultReason.TOO_OLD, id="yesterday"),
        pytest.param(-1 - HOUR, FaultReason.NO_DATA, id="tomorrow"),
    ],
)
def test_an_answer_must_tell_about_now(late_s: float, reason: FaultReason | None) -> None:
    given_answer = answer(NOW - HOUR, hours=1)
    if reason is None:
        assert checked_answer(given_answer, NOW + late_s) is given_answer
        return
    with pytest.raises(ProviderFault) as fault:
        checked_answer(given_answer, NOW + late_s)
    assert fault.value.reason is reason


def test_a_carbon_forecast_of_the_day_before_yesterday_is_too_old_and_a_price_is_not() -> None:
    slots = [Interval(NOW, NOW + HOUR, 5.0)]
    made_at = NOW - DAY - 1
    with pytest.raises(ProviderFault, match=r"made the values 24\.0 h ago") as fault:
        checked_answer(carbon_answer(slots, "a test", observed_at=made_at), NOW)
    assert fault.value.reason is FaultReason.TOO_OLD
    price = price_answer(slots, "a test", "EUR", observed_at=made_at)
    assert checked_answer(price, NOW) is price


def test_a_gap_now_is_no_data_once_the_value_before_is_an_hour_old() -> None:
    holed = carbon_answer(
        [Interval(NOW, NOW + 60, 5.0), Interval(NOW + 9_000, NOW + 9_900, 6.0)], "a test"
    )
    assert checked_answer(holed, NOW + 60 + HOUR) is holed
    with pytest.raises(ProviderFault, match="no value for now"):
        checked_answer(holed, NOW + 61 + HOUR)


@given(
    steps=st.lists(
        st.tuples(st.floats(0, 2 * DAY), st.sets(st.sampled_from([FIRST, SECOND, STATIC]))),
        max_size=12,
    )
)
def test_whatever_works_a_turn_ends_and_a_working_provider_is_never_passed_over(
    steps: list[tuple[float, set[Provider]]],
) -> None:
    plan, now = PLAN, NOW
    for wait_s, working in steps:
        now += wait_s
        plan, _ = asked(plan, now, working)
        assert plan.due_at(now) > now
        assert plan.due_at(now) <= now + DAY + HOUR
        if STATIC in working:
            assert plan.good(now) is not None or STATIC in plan.failures
        held = plan.held
        if held is not None:
            better = plan.providers[: plan.providers.index(held.provider)]
            resting = [one for one in better if not isinstance(one, Static)]
            assert all(one in plan.failures for one in resting)
