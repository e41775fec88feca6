"""The outlook of a second: looked up once, and for the zones of the view that asks."""

from greensched_extender.grid import Grid, ZoneSignal


def look_up(zone: str, now: float, runtime_s: float) -> ZoneSignal:
    return ZoneSignal(zone, 100.0, None, "grid-signal", "none", 0.0, None)


def test_an_outlook_holds_for_its_second_and_its_runtime() -> None:
    grid, zones = Grid(look_up), ("", "DE")
    first = grid.outlook(zones, 100.0, 60.0)
    assert grid.outlook(zones, 100.0, 61.0) is not first
    assert grid.outlook(zones, 100.9, 60.0) is first
    assert grid.outlook(zones, 101.0, 60.0) is not first


def test_zones_that_came_within_the_second_are_looked_up_at_once() -> None:
    grid = Grid(look_up)
    grid.outlook(("", "DE"), 100.0, 60.0)
    more = grid.outlook(("", "FR", "DE"), 100.9, 60.0)
    assert [signal.zone for signal in more.signals] == ["", "FR", "DE"]
    assert more.means.carbon_g_per_kwh.size == 3
