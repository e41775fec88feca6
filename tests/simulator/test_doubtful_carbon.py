"""Carbon that a file itself calls estimated, or that looks smoothed, is told with every run."""

import os
from pathlib import Path

import pytest

from greensched_simulator.grid_files import CARBON_LIMITS_G_PER_KWH, Column, read_series
from greensched_simulator.scenario import parse_scenario
from greensched_simulator.world import build_world

HOURS = 49
DATA = Path(os.environ.get("GREENSCHED_DATA") or Path(__file__).parents[3] / "shared" / "data")
FOLDER = DATA / "sustain-cluster-carbon"


def notes_on(folder: Path, values: list[int], marked: int) -> list[str]:
    """Return the notes on hourly carbon, of which so many first rows are marked as estimated."""
    lines = [
        f"2023-06-{1 + hour // 24:02}T{hour % 24:02}:00:00Z,{value},{int(hour < marked)}"
        for hour, value in enumerate(values)
    ]
    text = "\n".join(["time_utc,value,estimated", *lines])
    (folder / "carbon.csv").write_text(text, encoding="utf-8")
    carbon = {"file": "carbon.csv", "time_column": "time_utc", "column": "value"}
    scenario = {
        "name": "doubtful",
        "start": "2023-06-01T00:00:00Z",
        "length": "2d",
        "cluster": {
            "nodes": [
                {"name": "n", "count": 1, "hardware": "epyc-7763-1s", "cpu_cores": 128,
                 "memory": "512Gi", "zone": "SUN"},
            ],
        },
        "grids": {"SUN": {"carbon": carbon, "price": {"constant": 50, "unit": "EUR/MWh"}}},
        "workload": {"generator": {"jobs": 3}},
    }  # fmt: skip
    notes = build_world(parse_scenario(scenario, folder)).notes
    return [note for note in notes if "its carbon file" in note]


def test_a_few_estimated_rows_and_values_that_differ_are_not_told(tmp_path: Path) -> None:
    assert notes_on(tmp_path, list(range(HOURS)), marked=2) == []


def test_rows_that_are_marked_as_estimated_are_told(tmp_path: Path) -> None:
    assert notes_on(tmp_path, list(range(HOURS)), marked=HOURS - 1) == [
        "SUN: 98% of the rows of its carbon file are marked as estimated: claim no saving by it"
    ]


@pytest.mark.parametrize(("repeats", "is_told"), [(24, False), (25, True)])
def test_rows_that_repeat_the_one_before_are_told(
    tmp_path: Path, repeats: int, is_told: bool
) -> None:
    values = [100] * (repeats + 1) + list(range(HOURS - repeats - 1))
    told = "SUN: 52% of the rows of its carbon file repeat the one before: it looks smoothed"
    assert notes_on(tmp_path, values, marked=0) == [told] * is_told


@pytest.mark.skipif(not FOLDER.is_dir(), reason="real carbon data is not here")
def test_of_the_real_grids_three_are_estimated_and_none_is_smoothed() -> None:
    column = Column("datetime_utc", "ci_lca_g_per_kwh", CARBON_LIMITS_G_PER_KWH)
    series = {path.name.partition("_")[0]: read_series(path, column) for path in FOLDER.iterdir()
              if path.name.endswith(".csv.gz")}  # fmt: skip
    doubtful = {zone for zone, each in series.items() if each.estimated_share > 0.05}
    assert doubtful == {"IN-WE", "JP-TK", "SG"}
    assert max(each.repeated_share for each in series.values()) < 0.2
