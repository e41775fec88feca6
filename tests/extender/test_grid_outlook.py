"""The outlook of a second: looked up once, and for the zones of the view that asks."""

from greensched_extender.grid import Grid, ZoneSignal


def look_up(zones: tuple[str, ...], now: float, runtime_s: float) -> tuple[ZoneSignal, ...]:
    return tuple(ZoneSignal(zone, 100.0, None, "grid-signal", "none", 0.0, None) for zone in zones)


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


def test_a_run_of_another_length_asks_once_for_all_zones() -> None:
    asked: list[tuple[str, ...]] = []

    def counting(zones: tuple[str, ...], now: float, runtime_s: float) -> tuple[ZoneSignal, ...]:
        asked.append(zones)
        return look_up(zones, now, runtime_s)

    grid, zones = Grid(counting), ("", "DE", "FR")
    for runtime_s in (60.0, 61.0, 60.0):
        grid.outlook(zones, 100.0, runtime_s)
    assert asked == [zones, zones]
