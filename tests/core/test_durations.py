import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_core.durations import format_duration, parse_duration
from greensched_core.errors import BadDuration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90.0),
        ("1h30m", 5400.0),
        ("2d", 172_800.0),
        ("1.5h", 5400.0),
        ("250ms", 0.25),
        (" 5m ", 300.0),
    ],
)
def test_a_duration_is_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "90", "-5m", "1h 30m", "h", "1w", "soon", "٣s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(BadDuration, match="duration"):
        parse_duration(text)


def test_ten_years_are_the_most() -> None:
    assert parse_duration("3650d") == 315_360_000.0
    for text in ("3650d1s", "9" * 60 + "h"):
        with pytest.raises(BadDuration, match="ten years"):
            parse_duration(text)


def test_a_text_that_nobody_means_is_refused_before_it_is_read() -> None:
    assert parse_duration("1h" * 32) == 32 * 3600.0
    for text in ("1h" * 33, "1h" * 120_000, " " * 63 + "5m"):
        with pytest.raises(BadDuration, match="at most 64 characters") as refused:
            parse_duration(text)
        assert len(str(refused.value)) < 200


def test_a_refused_text_is_quoted_in_short() -> None:
    with pytest.raises(BadDuration) as refused:
        parse_duration("x" * 250_000)
    assert len(str(refused.value)) < 200
    assert "(250000 characters)" in str(refused.value)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.25, "0.2s"), (0, "0s"), (59, "59s"), (90, "1m30s"), (3600, "1h"), (90_061, "1d1h"),
     (-90, "-1m30s")],
)  # fmt: skip
def test_the_two_largest_units_are_written(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@given(st.integers(0, 3599))
def test_below_an_hour_nothing_is_lost(seconds: int) -> None:
    assert parse_duration(format_duration(seconds)) == seconds
