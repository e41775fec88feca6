import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_core.errors import BadInput
from greensched_core.signals.timestamps import (
    format_micro_time,
    format_timestamp,
    parse_timestamp,
)

TEN = 1_795_255_200.0  # 2026-11-21T10:00:00Z


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("2026-11-21T10:00:00Z", TEN, id="utc"),
        pytest.param("2026-11-21t10:00:00z", TEN, id="small-letters"),
        pytest.param("2026-11-21T11:00:00+01:00", TEN, id="offset"),
        pytest.param("2026-11-21T10:00:00.5Z", TEN + 0.5, id="fraction"),
        pytest.param("2026-11-21T10:00:00.123456789Z", TEN + 0.123456, id="nanoseconds-are-cut"),
        pytest.param("1970-01-01T00:00:00Z", 0.0, id="epoch"),
    ],
)
def test_a_timestamp_is_read(text: str, seconds: float) -> None:
    assert parse_timestamp(text) == pytest.approx(seconds, abs=1e-6)


@pytest.mark.parametrize(
    "text",
    ["", "2026-11-21", "2026-11-21T10:00:00", "2026-13-01T00:00:00Z", "1795255200", "2026-W47-6",
     "2026-11-21T10:00:60Z", "2026-11-21T10:00:00+99:00", "2026-11-21T10:00:00.Z"],
)  # fmt: skip
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="RFC 3339"):
        parse_timestamp(text)


def test_a_time_out_of_range_cannot_be_written() -> None:
    with pytest.raises(BadInput):
        format_timestamp(1e18)


@given(st.floats(0, 4e9))
def test_a_time_is_read_as_it_was_written(seconds: float) -> None:
    assert parse_timestamp(format_timestamp(seconds)) == pytest.approx(seconds, abs=2e-6)


@pytest.mark.parametrize("seconds", [0.0, 0.5, 1_763_719_200.25])
def test_a_micro_time_has_six_digits_always(seconds: float) -> None:
    """Older API servers read no Lease without them."""
    written = format_micro_time(seconds)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", written)
    assert parse_timestamp(written) == seconds
