import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_core.errors import BadQuantity
from greensched_core.quantities import parse_quantity


@pytest.mark.parametrize(
    ("text", "number"),
    [
        pytest.param("100m", 0.1, id="milli"),
        pytest.param("2", 2.0, id="plain"),
        pytest.param("+.5", 0.5, id="no-leading-digit"),
        pytest.param("2.", 2.0, id="no-trailing-digit"),
        pytest.param("1Ki", 1024.0, id="binary"),
        pytest.param("1k", 1000.0, id="decimal"),
        pytest.param("12e6", 12e6, id="exponent"),
        pytest.param("1E-3", 0.001, id="capital-exponent"),
        pytest.param("1E", 1e18, id="exa-is-no-exponent"),
        pytest.param("5n", 5e-9, id="nano"),
        pytest.param("-1", -1.0, id="negative"),
    ],
)
def test_a_quantity_is_read(text: str, number: float) -> None:
    assert parse_quantity(text) == pytest.approx(number, rel=1e-12)


@pytest.mark.parametrize(
    "text", ["1e3Ki", "", "m", "1 Gi", "1gi", "1.2.3", "NaN", "inf", "0x10", "1e999", "٣"]
)
def test_what_is_no_quantity_is_refused_by_name(text: str) -> None:
    with pytest.raises(BadQuantity, match="quantity"):
        parse_quantity(text)


@pytest.mark.parametrize("text", ["0" * 250_000 + "1", "x" * 250_000], ids=["number", "words"])
def test_a_text_too_long_is_refused_in_short_and_not_remembered(text: str) -> None:
    remembered = parse_quantity.cache_info().currsize
    with pytest.raises(BadQuantity) as refused:
        parse_quantity(text)
    assert len(str(refused.value)) < 200
    assert parse_quantity.cache_info().currsize == remembered


@given(st.integers(0, 10**15))
def test_whole_numbers_pass_unchanged(number: int) -> None:
    assert parse_quantity(str(number)) == number


@given(st.text(max_size=12))
def test_any_text_is_a_number_or_a_bad_quantity(text: str) -> None:
    try:
        assert isinstance(parse_quantity(text), float)
    except BadQuantity:
        pass
