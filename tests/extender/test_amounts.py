import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_extender.amounts import digits, scaled_amounts


@pytest.mark.parametrize(("value", "text"), [
    pytest.param(0.0, "0", id="nothing"),
    pytest.param(-40.0, "-40", id="negative"),
    pytest.param(2.46e-5, "0.0000246", id="tiny"),
    pytest.param(12345.0, "12345", id="large"),
    pytest.param(1.005, "1", id="no-needless-zeros"),
    pytest.param(100.0, "100", id="zeros-that-matter"),
    pytest.param(float("nan"), "nan", id="no-number"),
])  # fmt: skip
def test_three_digits_are_reported_without_an_exponent(value: float, text: str) -> None:
    assert digits(value) == text


@pytest.mark.parametrize(("values", "unit", "told"), [
    pytest.param([2.46e-5], "g", (["24.6"], "µg"), id="micro"),
    pytest.param([0.0], "g", (["0"], "g"), id="nothing"),
    pytest.param([], "g", ([], "g"), id="no-values"),
    pytest.param([0.95, 1.02], "Wh", (["0.95", "1.02"], "Wh"), id="the-largest-says-the-unit"),
    pytest.param([0.9999], "W", (["1"], "W"), id="rounds-up-to-the-next-unit"),
    pytest.param([999.9], "W", (["1"], "kW"), id="rounds-up-to-a-thousand"),
    pytest.param([1e-12], "g", (["0.001"], "ng"), id="below-all-prefixes"),
    pytest.param([5e9], "g", (["5000"], "Mg"), id="above-all-prefixes"),
])  # fmt: skip
def test_amounts_share_the_unit_that_suits_the_largest(
    values: list[float], unit: str, told: tuple[list[str], str]
) -> None:
    assert scaled_amounts(values, unit) == told


@given(st.lists(st.floats()))
def test_any_amounts_are_reported_without_an_exponent(values: list[float]) -> None:
    shown, _ = scaled_amounts([value for value in values if abs(value) < 1e30], "g")
    assert not any("e" in text for text in shown)
