import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_core.errors import BadInput
from greensched_core.power.curves import SPECPOWER_2021_SHAPE, PowerCurve

EPYC_7763 = PowerCurve((56.8, 100.0, 116.0, 130.0, 143.0, 162.0, 191.0, 211.0, 231.0, 250.0, 268.0))


@pytest.mark.parametrize(
    ("utilisation", "watts"),
    [
        pytest.param(-0.5, 56.8, id="below-zero-is-idle"),
        pytest.param(0.0, 56.8, id="idle"),
        pytest.param(0.05, 78.4, id="between-two-points"),
        pytest.param(0.1, 100.0, id="on-a-point"),
        pytest.param(0.95, 259.0, id="last-stretch"),
        pytest.param(1.0, 268.0, id="full"),
        pytest.param(1.5, 268.0, id="above-one-is-full"),
    ],
)
def test_watts_are_linear_between_the_points(utilisation: float, watts: float) -> None:
    assert EPYC_7763.at(utilisation) == pytest.approx(watts)


@pytest.mark.parametrize(
    ("watts", "utilisation"),
    [
        pytest.param(10.0, 0.0, id="below-idle"),
        pytest.param(56.8, 0.0, id="idle"),
        pytest.param(78.4, 0.05, id="between"),
        pytest.param(268.0, 1.0, id="full"),
        pytest.param(900.0, 1.0, id="more-than-it-draws"),
    ],
)
def test_utilisation_is_the_least_that_reaches_the_watts(watts: float, utilisation: float) -> None:
    assert EPYC_7763.utilisation_for(watts) == pytest.approx(utilisation)


@pytest.mark.parametrize(
    "watts",
    [
        pytest.param((1.0,) * 10, id="ten-points"),
        pytest.param((1.0,) * 12, id="twelve-points"),
        pytest.param((math.nan,) + (1.0,) * 10, id="nan"),
        pytest.param((1.0,) * 10 + (math.inf,), id="infinite"),
        pytest.param((-1.0,) + (1.0,) * 10, id="negative"),
        pytest.param((2.0,) + (3.0,) * 9 + (1.0,), id="full-below-idle"),
    ],
)
def test_a_curve_that_cannot_be_is_refused(watts: tuple[float, ...]) -> None:
    with pytest.raises(BadInput):
        PowerCurve(watts)


def test_a_stretched_curve_ends_at_the_given_watts() -> None:
    curve = PowerCurve.from_idle_and_peak(100.0, 400.0)
    assert (curve.idle_w, curve.peak_w) == (100.0, 400.0)
    middle = (SPECPOWER_2021_SHAPE[5] - 0.233) / (1 - 0.233)
    assert curve.at(0.5) == pytest.approx(100.0 + 300.0 * middle)


def test_eleven_watts_are_read_from_text() -> None:
    text = "56.8,100, 116,130,143,162,191,211,231,250,268"
    assert PowerCurve.parse(text) == EPYC_7763


@pytest.mark.parametrize(
    "text", ["", "12", "a,b", "1,2,3,4,5,6,7,8,9,10,eleven", "nan," * 10 + "1"]
)
def test_other_text_says_what_to_write(text: str) -> None:
    with pytest.raises(BadInput, match="watts"):
        PowerCurve.parse(text)


watts = st.floats(0, 5_000)
rising = st.lists(watts, min_size=11, max_size=11).map(lambda them: PowerCurve(tuple(sorted(them))))


@given(rising, st.floats(0, 1))
def test_the_inverse_of_a_rising_curve_gives_the_watts_back(
    curve: PowerCurve, utilisation: float
) -> None:
    drawn = curve.at(utilisation)
    assert curve.at(curve.utilisation_for(drawn)) == pytest.approx(drawn, abs=1e-6)


@given(rising, st.floats(0, 1), st.floats(0, 1))
def test_a_rising_curve_never_falls_with_utilisation(
    curve: PowerCurve, one: float, other: float
) -> None:
    low, high = sorted((one, other))
    assert curve.at(low) <= curve.at(high) + 1e-9
