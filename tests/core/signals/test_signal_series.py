import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_core.signals.series import SignalSeries

MIDNIGHT = 1_795_046_400.0 // 86_400 * 86_400
HOUR = 3_600.0


@pytest.fixture
def series() -> SignalSeries:
    return SignalSeries([(0.0, 100.0), (300.0, 400.0), (900.0, -50.0)], end=1_000.0)


@pytest.mark.parametrize(
    ("when", "value", "is_estimated"),
    [
        pytest.param(-1.0, 100.0, True, id="before-the-start-the-first-holds"),
        pytest.param(0.0, 100.0, False, id="start"),
        pytest.param(299.9, 100.0, False, id="holds-until-next"),
        pytest.param(300.0, 400.0, False, id="switches-on-time"),
        pytest.param(999.9, -50.0, False, id="last-slot"),
    ],
)
def test_a_value_holds_until_the_next_start(
    series: SignalSeries, when: float, value: float, is_estimated: bool
) -> None:
    assert (series.at(when), series.is_estimated_at(when)) == (value, is_estimated)


@pytest.mark.parametrize(
    ("begin", "until", "mean"),
    [
        pytest.param(10.0, 20.0, 100.0, id="inside-one-slot"),
        pytest.param(0.0, 300.0, 100.0, id="a-whole-slot"),
        pytest.param(150.0, 450.0, 250.0, id="half-and-half"),
        pytest.param(0.0, 1_000.0, (300 * 100 + 600 * 400 - 100 * 50) / 1_000, id="everything"),
        pytest.param(-300.0, 300.0, 100.0, id="from-before-the-start"),
        pytest.param(300.0, 300.0, 400.0, id="nothing-long-is-the-value"),
        pytest.param(300.0, 100.0, 400.0, id="backwards-is-the-value"),
    ],
)
def test_a_mean_is_the_exact_integral(
    series: SignalSeries, begin: float, until: float, mean: float
) -> None:
    assert series.mean(begin, until) == pytest.approx(mean)


def test_after_the_end_the_same_hour_of_day_repeats() -> None:
    hours = [(MIDNIGHT + hour * HOUR, 10.0 * hour) for hour in range(24)]
    series = SignalSeries(hours, end=MIDNIGHT + 24 * HOUR)
    assert series.at(MIDNIGHT + 30.5 * HOUR) == pytest.approx(60.0)
    assert series.is_estimated_at(MIDNIGHT + 24 * HOUR)
    week = series.mean(MIDNIGHT + 24 * HOUR, MIDNIGHT + 8 * 24 * HOUR)
    assert week == pytest.approx(115.0)


def test_after_the_end_an_hour_never_seen_takes_the_last_value() -> None:
    series = SignalSeries([(MIDNIGHT, 10.0), (MIDNIGHT + HOUR, 30.0)], end=MIDNIGHT + 2 * HOUR)
    assert series.at(MIDNIGHT + 5 * HOUR) == 30.0
    assert series.at(MIDNIGHT + 24 * HOUR) == 10.0
    across = series.mean(MIDNIGHT + HOUR, MIDNIGHT + 26 * HOUR)
    assert across == pytest.approx((24 * 30.0 + 10.0) / 25)


def test_two_half_hours_weigh_equally_in_their_hour_of_day() -> None:
    series = SignalSeries([(MIDNIGHT, 10.0), (MIDNIGHT + HOUR / 2, 30.0)], end=MIDNIGHT + HOUR)
    assert series.at(MIDNIGHT + 24 * HOUR) == 20.0


def test_a_hole_is_filled_and_says_so() -> None:
    slots = [(MIDNIGHT, 10.0), (MIDNIGHT + HOUR, None), (MIDNIGHT + 2 * HOUR, 50.0)]
    series = SignalSeries(slots)
    assert series.at(MIDNIGHT + HOUR) == 10.0
    assert series.is_estimated_at(MIDNIGHT + HOUR)
    assert not series.is_estimated_at(MIDNIGHT + 2 * HOUR)


def test_a_hole_a_day_later_takes_its_hour_of_day() -> None:
    slots = [(MIDNIGHT, 10.0), (MIDNIGHT + HOUR, 30.0), (MIDNIGHT + 25 * HOUR, None)]
    assert SignalSeries(slots).at(MIDNIGHT + 25 * HOUR) == 30.0


@pytest.mark.parametrize(
    ("slots", "end"),
    [
        pytest.param([(0.0, 1.0)], HOUR, id="a-lone-slot-holds-an-hour"),
        pytest.param([(0.0, 1.0), (900.0, 2.0)], 1_800.0, id="the-last-is-as-long-as-before"),
        pytest.param([(0.0, 1.0), (1e9, 2.0)], 1e9 + 86_400.0, id="at-most-a-day"),
    ],
)
def test_without_an_end_the_last_slot_gets_one(
    slots: list[tuple[float, float | None]], end: float
) -> None:
    assert SignalSeries(slots).end == end
    assert SignalSeries(slots, end=slots[-1][0]).end == end  # an end before the last slot is none


@pytest.mark.parametrize(
    "slots",
    [[], [(0.0, None)], [(1.0, 1.0), (0.0, 1.0)], [(0.0, 1.0), (0.0, 2.0)]],
    ids=["empty", "no-value", "falling", "twice"],
)
def test_a_series_needs_a_value_and_rising_starts(slots: list[tuple[float, float | None]]) -> None:
    with pytest.raises(ValueError, match="needs|rise"):
        SignalSeries(slots)


@st.composite
def any_series(draw: st.DrawFn) -> SignalSeries:
    widths = draw(st.lists(st.floats(1.0, 200_000.0), min_size=1, max_size=40))
    values = draw(
        st.lists(st.none() | st.floats(-500, 1_500), min_size=len(widths), max_size=len(widths))
    )
    first = draw(st.floats(-1_000, 1_000))
    values[draw(st.integers(0, len(values) - 1))] = first
    start = draw(st.floats(1.7e9, 1.9e9))
    starts = [start + sum(widths[:count]) for count in range(len(widths))]
    return SignalSeries(list(zip(starts, values, strict=True)), start + sum(widths))


spans = st.tuples(st.floats(-3e5, 3e6), st.floats(0.001, 3e6))


@given(any_series(), spans)
def test_a_mean_lies_between_the_least_and_the_most(
    series: SignalSeries, span: tuple[float, float]
) -> None:
    begin = series.start + span[0]
    mean = series.mean(begin, begin + span[1])
    values = series.extremes()
    slack = 1e-3 + 3e-3 / span[1]  # of doubles near 2e9 s
    assert values[0] - slack <= mean <= values[1] + slack


@given(any_series(), spans, st.floats(0, 1))
def test_integrals_add_up(series: SignalSeries, span: tuple[float, float], share: float) -> None:
    begin = series.start + span[0]
    until = begin + span[1]
    middle = begin + (until - begin) * share
    parts = (middle - begin) * series.mean(begin, middle)
    parts += (until - middle) * series.mean(middle, until)
    whole = (until - begin) * series.mean(begin, until)
    assert parts == pytest.approx(whole, rel=1e-6, abs=1.0)
