"""What a pod took, out of what a meter said: conserved, whatever resets and gaps there are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_core.metering.energy_pieces import (
    LONGEST_GAP_S,
    EnergyPoint,
    Piece,
    counter_pieces,
    energy_j,
    gauge_pieces,
    share_seen,
)

NAN = float("nan")


@pytest.mark.parametrize(
    ("points", "joules", "share"),
    [
        pytest.param([(30, 300.0), (60, 600.0), (100, 1000.0)], 1000.0, 1.0, id="from-its-start"),
        pytest.param([(30, 300.0), (90, 900.0)], 900.0, 0.9, id="the-end-was-not-scraped"),
        pytest.param([(30, 300.0), (130, 1000.0)], 1000.0, 1.0, id="told-once-more-when-ended"),
        pytest.param([(50, 500.0), (60, 50.0), (100, 450.0)], 950.0, 1.0, id="set-back"),
        pytest.param([(50, NAN), (60, 600.0), (100, 1000.0)], 1000.0, 1.0, id="nan-is-no-point"),
        pytest.param([(40, 400.0), (50, -1.0), (100, 1000.0)], 1000.0, 1.0, id="nor-below-zero"),
        pytest.param([(100, 0.0)], 0.0, 0.0, id="too-late-to-know-when-it-began"),
        pytest.param([], 0.0, 0.0, id="nobody-saw-it"),
    ],
)
def test_a_counter_tells_what_was_taken(
    points: list[EnergyPoint], joules: float, share: float
) -> None:
    pieces = counter_pieces(points, 0.0, 100.0)
    assert energy_j(pieces) == pytest.approx(joules)
    assert share_seen(pieces, 0.0, 100.0) == pytest.approx(share)


@pytest.mark.parametrize(
    ("gap_s", "joules"),
    [
        pytest.param(LONGEST_GAP_S, 100.0 + 50.0, id="between-two-scrapes"),
        pytest.param(LONGEST_GAP_S + 1, 100.0, id="unknown-loss"),
    ],
)
def test_a_reset_in_a_long_gap_is_not_seen(gap_s: float, joules: float) -> None:
    points = [(10.0, 100.0), (10.0 + gap_s, 50.0)]
    assert energy_j(counter_pieces(points, 0.0, 1_000.0)) == joules


def test_a_gap_without_a_reset_loses_nothing() -> None:
    pieces = counter_pieces([(10.0, 100.0), (900.0, 9_000.0)], 0.0, 900.0)
    assert (energy_j(pieces), share_seen(pieces, 0.0, 900.0)) == (9_000.0, 1.0)


def test_watts_are_taken_for_the_step_before_them() -> None:
    points = [(10.0, 50.0), (20.0, NAN), (30.0, 70.0), (40.0, 99.0)]
    pieces = gauge_pieces(points, 5.0, 30.0, step_s=10.0)
    assert pieces == [Piece(5.0, 10.0, 250.0), Piece(20.0, 30.0, 700.0)]
    assert share_seen(pieces, 5.0, 30.0) == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("pieces", "share"),
    [
        pytest.param([Piece(5.0, 5.0, 1.0)], 1.0, id="seen"),
        pytest.param([], 0.0, id="not-seen"),
    ],
)
def test_a_run_of_no_time_is_seen_or_not(pieces: list[Piece], share: float) -> None:
    assert share_seen(pieces, 5.0, 5.0) == share


steps = st.lists(
    st.tuples(st.floats(1.0, 80.0), st.floats(0.0, 1e6), st.booleans()), min_size=1, max_size=40
)


@given(steps)
def test_no_joule_is_lost_or_made_by_resets(taken: list[tuple[float, float, bool]]) -> None:
    """A meter that is set back right after a scrape loses nothing: the sum is what was taken."""
    points: list[EnergyPoint] = []
    at_s = counter = true_j = 0.0
    for seconds, joules, is_set_back in taken:
        # Set back, it must show less than before, or nobody could tell; a meter that starts does.
        if is_set_back and joules < counter:
            counter = 0.0
        at_s, counter, true_j = at_s + seconds, counter + joules, true_j + joules
        points.append((at_s, counter))
    pieces = counter_pieces(points, 0.0, at_s)
    assert energy_j(pieces) == pytest.approx(true_j, rel=1e-9, abs=1e-6)
    assert share_seen(pieces, 0.0, at_s) == pytest.approx(1.0)


@given(
    st.lists(st.tuples(st.floats(0.0, 1e4), st.floats(allow_nan=True)), max_size=30),
    st.floats(0.0, 1e4),
    st.floats(0.0, 1e4),
)
def test_no_piece_is_negative_or_outside_its_run(
    points: list[EnergyPoint], begin_s: float, length_s: float
) -> None:
    until_s = begin_s + length_s
    rising = sorted(dict(points).items())
    for pieces in (
        counter_pieces(rising, begin_s, until_s),
        gauge_pieces(rising, begin_s, until_s, 15.0),
    ):
        assert all(piece.energy_j >= 0 for piece in pieces)
        assert all(begin_s <= piece.begin_s <= piece.until_s <= until_s for piece in pieces)
        assert 0.0 <= share_seen(pieces, begin_s, until_s) <= 1.0
