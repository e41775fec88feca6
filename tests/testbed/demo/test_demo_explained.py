"""Why carbon changed, in a sentence: by energy, by the grid, by placing and by waiting."""

from dataclasses import replace

from greensched_core.units import JOULES_PER_KWH
from greensched_testbed.demo.explained import why_carbon_changed
from greensched_testbed.demo.results import BillSums, DemoResult, GroupSums, Holding, ThreeRuns

NO_HOLDING = Holding(0, (), {}, 0, 0)


def run(**kwh_and_grams: tuple[float, float]) -> DemoResult:
    """Return a run whose zones took so much energy and emitted so much carbon above idle."""
    bills = {
        zone: BillSums(energy_active_j=kwh * JOULES_PER_KWH, carbon_active_g=grams)
        for zone, (kwh, grams) in kwh_and_grams.items()
    }
    by_zone = {zone: GroupSums(1, 1, 1, bill) for zone, bill in bills.items()}
    whole = sum(bills.values(), BillSums())
    return DemoResult("any", 2, frozenset(), 0.0, 0.0, 2, whole, {}, by_zone, ())


DEFAULT = run(CLEAN=(2.0, 100.0), DIRTY=(8.0, 4000.0))
PLACED = run(CLEAN=(6.0, 300.0), DIRTY=(2.0, 1000.0))
HELD = run(CLEAN=(6.0, 230.0), DIRTY=(2.0, 1000.0))


def test_energy_grid_and_zone_are_separate_and_placing_from_waiting() -> None:
    assert why_carbon_changed(ThreeRuns(DEFAULT, PLACED, HELD, NO_HOLDING)) == (
        "The same work emitted 70.0 % less carbon above idle. It took 20.0 % less energy, and a "
        "kilowatt-hour of it emitted 154 instead of 410 g: 75 % of the energy came from CLEAN "
        "instead of 20 %. Placing alone led to 68.3 % less carbon, waiting then to 5.4 % less."
    )


def test_more_carbon_is_reported_as_more() -> None:
    told = why_carbon_changed(ThreeRuns(PLACED, PLACED, DEFAULT, NO_HOLDING))
    assert "emitted 215.4 % more carbon" in told and "waiting then to 215.4 % more." in told


def test_runs_that_did_not_do_the_same_are_not_compared() -> None:
    lazy = replace(HELD, unplaced=frozenset({1}))
    told = why_carbon_changed(ThreeRuns(DEFAULT, PLACED, lazy, NO_HOLDING))
    assert told == "The runs placed different pods, so their carbon is not compared."


def test_the_zone_that_made_the_difference_is_named_though_another_gained_more() -> None:
    default = run(HYDRO=(6.0, 200.0), COAL=(3.0, 1900.0), SOLAR=(1.0, 170.0))
    placed = run(HYDRO=(6.4, 220.0), COAL=(0.0, 0.0), SOLAR=(3.6, 430.0))
    told = why_carbon_changed(ThreeRuns(default, placed, placed, NO_HOLDING))
    assert "0 % of the energy came from COAL instead of 30 %" in told
