import time

import pytest

from greensched_core.clock import ManualClock, ScaledClock, WallClock


def test_the_manual_clock_moves_only_when_asked_to() -> None:
    clock = ManualClock(100.0)
    assert (clock.now(), clock.monotonic()) == (100.0, 100.0)
    clock.advance(5.0)
    assert clock.now() == 105.0


def test_no_clock_goes_back() -> None:
    with pytest.raises(ValueError, match="cannot go back"):
        ManualClock().advance(-1.0)
    wall = WallClock()
    assert wall.monotonic() <= wall.monotonic()
    assert wall.now() > 1.7e9


def test_a_scaled_clock_passes_a_day_in_ten_minutes_and_shows_every_process_the_same() -> None:
    ten_minutes_ago = time.time() - 600.0
    one, other = (ScaledClock(since_s=ten_minutes_ago, shows_s=0.0, rate=144.0) for _ in range(2))
    first = one.now()
    second = other.now()
    assert first == pytest.approx(86_400.0, abs=144.0)
    assert 0.0 <= second - first < 144.0
