"""The grid as it was: known only where it was noted."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_core.clock import ManualClock
from greensched_core.signals.chain import GridSignals
from greensched_core.signals.static import StaticZone, StaticZones
from greensched_operator.ledger.grid_history import (
    NOTED_EVERY_S,
    GridHistory,
    Known,
    known_from,
)

BEGAN_S = 1_700_000_000.0
UNKNOWN: Known = (None, None)


def history(notes: Sequence[tuple[float, Known]]) -> GridHistory:
    """A zone A whose values were noted at these seconds after the begin."""
    clock = ManualClock(BEGAN_S)
    noted: list[Known] = [UNKNOWN]
    found = GridHistory(lambda *_: noted[0], clock)
    for at_s, known in notes:
        clock.advance(BEGAN_S + at_s - clock.now())
        noted[0] = known
        found.note({"A"})
    return found


CLEAN, DIRTY = (100.0, 20.0), (500.0, 80.0)
CHANGING = [(0.0, CLEAN), (60.0, CLEAN), (120.0, DIRTY), (180.0, DIRTY)]


@pytest.mark.parametrize(
    ("begin_s", "until_s", "known"),
    [
        pytest.param(0.0, 120.0, CLEAN, id="until-it-changed"),
        pytest.param(120.0, 180.0, DIRTY, id="since-it-changed"),
        pytest.param(60.0, 180.0, (300.0, 50.0), id="by-the-time-that-each-held"),
        pytest.param(120.0, 120.0, DIRTY, id="at-a-moment"),
        pytest.param(120.0, 480.0, DIRTY, id="soon-after-the-last-note"),
        pytest.param(-10.0, 60.0, CLEAN, id="just-before-the-first-note"),
        pytest.param(-10.0, -5.0, CLEAN, id="all-of-it-just-before-the-first-note"),
        pytest.param(-10.1, 60.0, UNKNOWN, id="before-the-first-note"),
        pytest.param(120.0, 481.0, UNKNOWN, id="long-after-the-last-note"),
    ],
)
def test_means_of_what_was_noted(begin_s: float, until_s: float, known: Known) -> None:
    assert history(CHANGING).mean("A", BEGAN_S + begin_s, BEGAN_S + until_s) == known


def test_another_zone_is_unknown() -> None:
    assert history(CHANGING).mean("B", BEGAN_S, BEGAN_S + 60.0) == UNKNOWN


def test_what_was_not_noted_for_long_is_unknown_and_later_notes_count() -> None:
    found = history([(0.0, CLEAN), (60.0, CLEAN), (960.0, CLEAN), (1020.0, CLEAN)])
    assert found.mean("A", BEGAN_S, BEGAN_S + 60.0) == CLEAN
    assert found.mean("A", BEGAN_S, BEGAN_S + 1000.0) == UNKNOWN
    assert found.mean("A", BEGAN_S + 960.0, BEGAN_S + 1000.0) == CLEAN


def test_a_missing_price_hides_no_carbon() -> None:
    found = history([(0.0, (100.0, None)), (60.0, (100.0, 20.0)), (120.0, (100.0, 20.0))])
    assert found.mean("A", BEGAN_S, BEGAN_S + 120.0) == (100.0, None)
    assert found.mean("A", BEGAN_S + 60.0, BEGAN_S + 120.0) == (100.0, 20.0)


def test_what_is_older_than_any_run_is_forgotten() -> None:
    days = 10
    hours = [(3600.0 * hour + minute, (float(hour), 1.0)) for hour in range(24 * days)
             for minute in range(0, 3600, 300)]  # fmt: skip
    found = history(hours)
    assert found.mean("A", BEGAN_S + 86_400.0, BEGAN_S + 90_000.0) == UNKNOWN
    assert found.mean("A", BEGAN_S + 3 * 86_400.0, BEGAN_S + 3 * 86_400.0 + 60.0) == (72.0, 1.0)


def test_static_values_count_as_in_the_plans() -> None:
    default = StaticZone("", 430.0, 90.0, "EUR", "a table")
    known = known_from(GridSignals(StaticZones({}, default)))
    assert known("A", BEGAN_S) == (430.0, 90.0)


@given(
    st.lists(st.floats(0.0, 1_000.0), min_size=2, max_size=40),
    st.floats(0.0, 1.0),
    st.floats(0.0, 1.0),
    st.floats(0.0, 1.0),
)
def test_means_of_parts_make_up_the_whole(
    carbon: list[float], one: float, other: float, third: float
) -> None:
    found = history([(place * NOTED_EVERY_S, (grams, grams)) for place, grams in enumerate(carbon)])
    length_s = (len(carbon) - 1) * NOTED_EVERY_S
    begin_s, middle_s, end_s = (BEGAN_S + part * length_s for part in sorted((one, other, third)))
    totals = [
        mean * (until_s - since_s)
        for since_s, until_s in ((begin_s, end_s), (begin_s, middle_s), (middle_s, end_s))
        if (mean := found.mean("A", since_s, until_s)[0]) is not None
    ]
    assert totals[0] == pytest.approx(totals[1] + totals[2], rel=1e-6, abs=1e-3)
