"""Times that a trace writes as text."""

import math

import pytest

from greensched_core.signals.timestamps import parse_timestamp
from greensched_simulator.formats.trace_rows import Row


@pytest.mark.parametrize("text", ["2023-06-01T02:00:00+02:00", "2023-06-01 00:00:00Z"])
def test_a_time_with_its_zone_is_a_moment(text: str) -> None:
    row = Row(2, {"submit": text})
    assert row.moment("submit") == parse_timestamp("2023-06-01T00:00:00Z")
    assert row.faults == []


def test_a_time_without_a_zone_is_a_fault_unless_it_is_said_to_be_utc() -> None:
    row = Row(2, {"submit": "2023-06-01 00:00:00"})
    assert row.moment("submit", is_utc=True) == parse_timestamp("2023-06-01T00:00:00Z")
    assert row.faults == []
    row.moment("submit", remedy="set TZ")
    assert str(row.faults[0]) == ("row 2: submit 2023-06-01 00:00:00 has no time zone; set TZ")


@pytest.mark.parametrize("text", ["", "noon", "2023-02-30T00:00:00Z"])
def test_what_is_no_time_is_a_fault(text: str) -> None:
    row = Row(2, {"submit": text})
    assert math.isnan(row.moment("submit"))
    assert str(row.faults[0]).startswith(f"row 2: submit {text!r} is not a time such as 2023-")
