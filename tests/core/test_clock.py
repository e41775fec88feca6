import pytest

from greensched_core.clock import ManualClock, WallClock


def test_the_manual_clock_moves_only_when_told() -> None:
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
