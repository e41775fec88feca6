"""Carbon and prices of files that look doubtful are told with every run; most real ones do not."""

import gzip
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from greensched_policies.costs.cost import Floats
from greensched_simulator.formats.grid_files import (
    CARBON_LIMITS_G_PER_KWH,
    PRICE_LIMITS_PER_MWH,
    Series,
    WantedColumn,
    read_series,
)
from greensched_simulator.world.grid_doubts import hours_apart, notes_on_files
from greensched_simulator.world.scenario_loading import parse_scenario
from greensched_simulator.world.world import build_world

HOURS = 49
DATA = Path(os.environ.get("GREENSCHED_DATA") or Path(__file__).parents[4] / "shared" / "data")
FOLDER = DATA / "sustain-cluster-carbon"
HOUR = 3600.0
YEAR = 8760
needs_data = pytest.mark.skipif(not FOLDER.is_dir(), reason="real carbon data is not here")


def scenario_of(grids: dict[str, Any], *, start: str, length: str) -> dict[str, Any]:
    """Return a scenario with a node in each zone."""
    nodes = [
        {"name": f"n{number}", "count": 1, "hardware": "epyc-7763-1s", "cpu_cores": 128,
         "memory": "512Gi", "zone": zone}
        for number, zone in enumerate(grids)
    ]  # fmt: skip
    return {
        "name": "doubtful", "start": start, "length": length, "cluster": {"nodes": nodes},
        "grids": grids, "workload": {"generator": {"jobs": 3}},
    }  # fmt: skip


def notes_on_rows(folder: Path, values: list[int], marked: int) -> list[str]:
    """Return the notes on hourly carbon, of which so many first rows are marked as estimated."""
    lines = [
        f"2023-06-{1 + hour // 24:02}T{hour % 24:02}:00:00Z,{value},{int(hour < marked)}"
        for hour, value in enumerate(values)
    ]
    text = "\n".join(["time_utc,value,estimated", *lines])
    (folder / "carbon.csv").write_text(text, encoding="utf-8")
    carbon = {"file": "carbon.csv", "time_column": "time_utc", "column": "value"}
    grids = {"SUN": {"carbon": carbon, "price": {"constant": 50, "unit": "EUR/MWh"}}}
    scenario = scenario_of(grids, start="2023-06-01T00:00:00Z", length="2d")
    notes = build_world(parse_scenario(scenario, folder)).notes
    return [note for note in notes if "its carbon file" in note]


def test_a_few_estimated_rows_and_values_that_differ_are_not_reported(tmp_path: Path) -> None:
    assert notes_on_rows(tmp_path, list(range(HOURS)), marked=2) == []


def test_rows_that_are_marked_as_estimated_are_reported(tmp_path: Path) -> None:
    assert notes_on_rows(tmp_path, list(range(HOURS)), marked=HOURS - 1) == [
        "SUN: 98% of the rows of its carbon file are marked as estimated: do not claim a saving "
        "from it"
    ]


@pytest.mark.parametrize(("repeats", "is_told"), [(24, False), (25, True)])
def test_rows_that_repeat_the_one_before_are_reported(
    tmp_path: Path, repeats: int, is_told: bool
) -> None:
    values = [100] * (repeats + 1) + list(range(HOURS - repeats - 1))
    told = "SUN: 52% of the rows of its carbon file repeat the one before: it looks smoothed"
    assert notes_on_rows(tmp_path, values, marked=0) == [told] * is_told


@needs_data
def test_of_the_real_grids_three_are_estimated_and_none_is_smoothed() -> None:
    series = real_carbon()
    doubtful = {zone for zone, each in series.items() if each.estimated_share > 0.05}
    assert doubtful == {"IN-WE", "JP-TK", "SG"}
    assert max(each.repeated_share for each in series.values()) < 0.2


def real_carbon() -> dict[str, Series]:
    """Return the life-cycle carbon of each zone, three years by the hour."""
    column = WantedColumn("datetime_utc", "ci_lca_g_per_kwh", CARBON_LIMITS_G_PER_KWH)
    return {path.name.partition("_")[0]: read_series(path, column)
            for path in sorted(FOLDER.glob("*.csv.gz"))}  # fmt: skip


def real_pairs() -> dict[str, tuple[Series, Series]]:
    """Return carbon and price of each zone that has both."""
    folder, found = DATA / "sustain-cluster-prices", {}
    for zone, carbon in real_carbon().items():
        for path in folder.glob(f"{zone}_*.csv.gz"):
            with gzip.open(path, "rt") as lines:
                name = next(lines).strip().split(",")[1]
            found[zone] = (
                carbon,
                read_series(path, WantedColumn("datetime_utc", name, PRICE_LIMITS_PER_MWH)),
            )
    return found


def later(series: Series, hours: float) -> Series:
    return series._replace(times_s=series.times_s + hours * HOUR)


def within(series: Series, year: int) -> Series:
    begin_s = datetime(year, 1, 1, tzinfo=UTC).timestamp()
    mine = (series.times_s >= begin_s) & (series.times_s <= begin_s + YEAR * HOUR)
    return series._replace(times_s=series.times_s[mine], values=series.values[mine])


@needs_data
def test_no_real_pair_of_carbon_and_price_seems_shifted() -> None:
    pairs = real_pairs()
    assert len(pairs) == 11
    alarms = [zone for zone, (carbon, price) in pairs.items() if hours_apart(carbon, price)]
    by_year = [
        (zone, year)
        for zone, (carbon, price) in pairs.items()
        for year in (2021, 2022, 2023)
        if hours_apart(within(carbon, year), price)
    ]
    assert (alarms, by_year) == ([], [])


@needs_data
def test_prices_that_were_turned_into_utc_twice_are_found() -> None:
    """The defect of SustainCluster's own files of these zones, put back into the mended ones."""
    pairs, twice = real_pairs(), {"US-CAL-CISO": 8, "US-MIDA-PJM": 5, "US-NY-NYIS": 5}
    found = {zone: hours_apart(pairs[zone][0], later(pairs[zone][1], by))
             for zone, by in twice.items()}  # fmt: skip
    assert found == {"US-CAL-CISO": -8, "US-MIDA-PJM": -4, "US-NY-NYIS": -5}


@needs_data
@pytest.mark.parametrize("hours", [-9, -8, -5, 5, 8, 9])
def test_a_shift_of_five_hours_or_more_is_found_in_all_zones_but_one(hours: int) -> None:
    """South Africa's price is a tariff, which goes with nothing."""
    found = {zone: hours_apart(carbon, later(price, hours))
             for zone, (carbon, price) in real_pairs().items()}  # fmt: skip
    assert {zone for zone, by in found.items() if by == 0} == {"ZA"}
    assert all(abs(by + hours) <= 2 for zone, by in found.items() if zone != "ZA")


@needs_data
def test_the_cleanest_hour_of_sound_grids_is_no_sign_of_their_noon() -> None:
    """By solar time, from the longitude of the zone's middle; why no noon is checked."""
    longitudes = {
        "AU-NSW": 147, "BR-SP": -49, "CA-ON": -80, "DE-LU": 10, "GB": -2, "IN-WE": 74,
        "JP-TK": 139, "KR": 128, "SG": 104, "US-CAL-CISO": -120, "US-MIDA-PJM": -78,
        "US-NY-NYIS": -75, "US-TEX-ERCO": -98, "ZA": 25,
    }  # fmt: skip
    days = {zone: each.values[:-1].reshape(-1, 24).mean(axis=0)
            for zone, each in real_carbon().items()}  # fmt: skip
    cleanest = {
        zone: (day.argmin() + 0.5 + longitudes[zone] / 15) % 24 for zone, day in days.items()
    }
    far = {zone for zone, hour in cleanest.items() if abs(hour - 12) > 3}
    assert far == {"BR-SP", "CA-ON", "IN-WE", "US-MIDA-PJM", "US-NY-NYIS", "US-TEX-ERCO"}
    assert {zone for zone in far if cleanest[zone] < 5} == {
        "CA-ON", "US-MIDA-PJM", "US-NY-NYIS", "US-TEX-ERCO",
    }  # fmt: skip
    depth = {zone: 1 - day.min() / day.mean() for zone, day in days.items()}
    assert max(depth, key=lambda zone: depth[zone]) == "CA-ON"


def made_up(values: Floats) -> Series:
    times_s: Floats = HOUR * np.arange(float(values.size))
    return Series(times_s, values, (), values.size, 0.0, 0.0)


@pytest.mark.parametrize(
    ("hours", "shift", "found"),
    [
        pytest.param(YEAR + 12, 0, 0, id="together"),
        pytest.param(YEAR + 12, 2, 0, id="near"),
        pytest.param(YEAR + 12, 3, 3, id="ahead"),
        pytest.param(YEAR + 12, -12, -12, id="behind"),
        pytest.param(YEAR - 1, 6, 0, id="less-than-a-year"),
    ],
)
def test_a_price_that_goes_with_the_carbon_of_another_hour_is_reported(
    hours: int, shift: int, found: int
) -> None:
    dice = np.random.default_rng(1)
    carbon, noise = dice.normal(400.0, 50.0, (2, hours))
    price = np.roll(carbon, -shift) + noise
    assert hours_apart(made_up(carbon), made_up(price)) == found


def test_days_that_look_alike_tell_of_no_shift() -> None:
    """Both zones have the same noise-free day, six hours apart, and changes that nobody shares."""
    dice, hours = np.random.default_rng(1), np.arange(2.0 * YEAR)
    carbon, price = dice.normal(400.0, 5.0, (2, hours.size))
    carbon += 100.0 * np.cos(2 * np.pi * hours / 24)
    price += 100.0 * np.cos(2 * np.pi * (hours - 6) / 24)
    assert hours_apart(made_up(carbon), made_up(price)) == 0


def test_a_shifted_price_is_reported_with_the_run(tmp_path: Path) -> None:
    dice = np.random.default_rng(1)
    values = dice.integers(100, 900, YEAR + 24).tolist()
    stamps = [
        (datetime(2023, 1, 1, tzinfo=UTC) + timedelta(hours=hour)).isoformat()
        for hour in range(len(values))
    ]
    rows = zip(stamps, values, values[-6:] + values[:-6], strict=True)
    lines = ["time,ci_direct,price", *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "grid.csv").write_text("\n".join(lines))
    [kind, shift] = notes_on(tmp_path, {"A": ("ci_direct", "price")})
    assert kind == "carbon is direct in A, as its column says"
    assert shift == (
        "A: its price follows the pattern of its carbon 6 h earlier: one of the two files "
        "may be in another time zone than it says, or of another place"
    )


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        pytest.param(["value"], [], id="the-column-does-not-say"),
        pytest.param(["indirect", "Indirect_g", "volcanic"], [], id="other-words"),
        pytest.param(["ci_lca", "Life-cycle g"],
                     ["carbon is life-cycle in A, B, as its column says"], id="one-kind"),
        pytest.param(["ci_direct", "value", "ci_lca"],
                     ["carbon is direct in A and life-cycle in C, as its column says: the two "
                         "cannot be compared; give all zones the same kind"], id="two-kinds"),
        pytest.param(["low_carbon_pct", "shared"], ["A: its carbon is read from the column "
            "low_carbon_pct in g/kWh, but the name suggests a share"], id="a-share"),
    ],
)  # fmt: skip
def test_whether_carbon_is_direct_or_life_cycle_is_reported(
    tmp_path: Path, columns: list[str], told: list[str]
) -> None:
    for name in columns:
        (tmp_path / f"{name}.csv").write_text(
            f"time,{name}\n2023-01-01T00:00:00Z,1\n2023-01-01T01:00:00Z,2\n"
        )
    zones = {zone: (name, "") for zone, name in zip("ABC", columns, strict=False)}
    assert notes_on(tmp_path, zones) == told


def test_the_kinds_of_marginal_carbon_are_distinguished_from_those_of_carbon(
    tmp_path: Path,
) -> None:
    names = ["marginal_direct", "marginal_lca"]
    hours = ["2023-01-01T00:00:00Z", "2023-01-01T01:00:00Z"]
    lines = [",".join(["time", *names]), *(f"{hour},1,2" for hour in hours)]
    (tmp_path / "grid.csv").write_text("\n".join(lines))
    price = {"constant": 1, "unit": "EUR/MWh"}
    grids = {
        zone: {"carbon": {"constant": 1}, "marginal": _file(tmp_path, marginal), "price": price}
        for zone, marginal in zip("AB", names, strict=True)
    }  # fmt: skip
    scenario = scenario_of(grids, start=hours[0], length="1h")
    assert list(notes_on_files(parse_scenario(scenario, tmp_path))) == [
        "marginal carbon is direct in A and life-cycle in B, as its column says: the two cannot "
        "be compared; give all zones the same kind"
    ]


def notes_on(folder: Path, zones: dict[str, tuple[str, str]]) -> list[str]:
    """Return the notes on zones whose carbon and price are columns of files, else a constant."""
    grids = {
        zone: {
            "carbon": _file(folder, carbon),
            "price": _file(folder, price) | {"unit": "EUR/MWh"} if price
            else {"constant": 1, "unit": "EUR/MWh"},
        }
        for zone, (carbon, price) in zones.items()
    }  # fmt: skip
    scenario = scenario_of(grids, start="2023-01-01T00:00:00Z", length="1h")
    return list(notes_on_files(parse_scenario(scenario, folder)))


def _file(folder: Path, column: str) -> dict[str, str]:
    file = "grid.csv" if (folder / "grid.csv").exists() else f"{column}.csv"
    return {"file": file, "time_column": "time", "column": column}
