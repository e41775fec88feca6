import gzip
import math
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_core.errors import BadInput
from greensched_simulator.formats.grid_files import (
    CARBON_LIMITS_G_PER_KWH,
    PRICE_LIMITS_PER_MWH,
    WantedColumn,
    read_series,
)

DATA = Path(os.environ.get("GREENSCHED_DATA") or Path(__file__).parents[4] / "shared" / "data")
CARBON = WantedColumn("time", "carbon", CARBON_LIMITS_G_PER_KWH)
JUNE_S = datetime(2023, 6, 1, tzinfo=UTC).timestamp()
HEADER = "time,carbon\n"


def written(folder: Path, text: str, name: str = "grid.csv") -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def hour(number: int) -> str:
    return (datetime(2023, 6, 1, tzinfo=UTC) + timedelta(hours=number)).isoformat()


@pytest.mark.parametrize("name", ["grid.csv", "grid.csv.gz"])
def test_values_hold_from_their_time_and_the_end_is_reported(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, f"{HEADER}{hour(0)},300\n{hour(1)},250.5\n", name)
    series = read_series(path, CARBON)
    assert (series.times_s - JUNE_S).tolist() == [0, 3600, 7200]
    assert series.values[:2].tolist() == [300, 250.5]
    assert math.isnan(series.values[2])
    assert (series.gaps, series.rows) == ((), 2)


def test_other_units_become_ours(tmp_path: Path) -> None:
    path = written(tmp_path, f"{HEADER}{hour(0)},1000\n{hour(1)},500\n")
    series = read_series(path, CARBON._replace(factor=0.5))
    assert series.values[:2].tolist() == [500, 250]


def test_an_offset_is_heeded(tmp_path: Path) -> None:
    path = written(tmp_path, f"{HEADER}2023-06-01T02:00:00+02:00,1\n2023-06-01T01:00Z,2\n")
    assert (read_series(path, CARBON).times_s - JUNE_S).tolist() == [0, 3600, 7200]


def test_a_local_time_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, f"{HEADER}2023-06-01 00:00:00,1\n2023-06-01 01:00:00,2\n")
    with pytest.raises(BadInput, match=r"row 2: .* has no time zone; .*time_zone: UTC"):
        read_series(path, CARBON)
    assert read_series(path, CARBON._replace(is_utc=True)).times_s[0] == JUNE_S


def test_a_column_may_say_that_it_is_utc(tmp_path: Path) -> None:
    text = "datetime_utc,carbon\n2023-06-01 00:00:00,1\n2023-06-01 01:00:00,2\n"
    series = read_series(written(tmp_path, text), CARBON._replace(time="datetime_utc"))
    assert series.times_s[0] == JUNE_S


def test_missing_hours_are_nan_and_reported_by_row(tmp_path: Path) -> None:
    hours = [0, 1, 2, 5, 6, 7, 8, 9, 10, 11, 12]
    path = written(tmp_path, HEADER + "".join(f"{hour(n)},100\n" for n in hours))
    series = read_series(path, CARBON)
    assert (np.diff(series.times_s) == 3600).all()
    assert np.flatnonzero(np.isnan(series.values)).tolist() == [3, 4, 13]
    assert [str(gap) for gap in series.gaps] == ["row 5: 2 h are missing before it"]


def test_an_empty_cell_is_a_gap(tmp_path: Path) -> None:
    path = written(tmp_path, f"{HEADER}{hour(0)},1\n{hour(1)},\n{hour(2)},3\n")
    series = read_series(path, CARBON)
    assert [str(gap) for gap in series.gaps] == ["row 3: carbon is empty"]
    assert math.isnan(series.values[1])


def test_hours_may_turn_to_quarters_within_a_file(tmp_path: Path) -> None:
    hours = [hour(n) for n in range(10)]
    start = datetime(2023, 6, 1, 10, tzinfo=UTC)
    quarters = [(start + timedelta(minutes=15 * n)).isoformat() for n in range(40)]
    path = written(tmp_path, HEADER + "".join(f"{time},100\n" for time in hours + quarters))
    assert read_series(path, CARBON).gaps == ()


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        pytest.param(f"{hour(0)},1", "row 3: time 2023-06-01T00:00:00+00:00 is the s", id="twice"),
        pytest.param("2023-05-31T00:00:00Z,1", "is earlier than the row before", id="back"),
        pytest.param(f"{hour(1)},-3", "row 3: carbon is -3, not within 0 to 2000", id="negative"),
        pytest.param(f"{hour(1)},9999", "carbon is 9999, not within 0 to 2000", id="absurd"),
        pytest.param(f"{hour(1)},many", "carbon 'many' is not a number", id="no-number"),
        pytest.param(f"{hour(1)},nan", "carbon 'nan' is not a number", id="nan"),
        pytest.param("noon,1", "time 'noon' is not a time", id="no-time"),
        pytest.param(hour(1), "1 cells, but the header names 2", id="short"),
    ],
)  # fmt: skip
def test_a_row_at_fault_is_reported_with_its_number(tmp_path: Path, row: str, reason: str) -> None:
    path = written(tmp_path, f"{HEADER}{hour(0)},1\n{row}\n{hour(2)},3\n")
    with pytest.raises(BadInput) as told:
        read_series(path, CARBON)
    assert reason in str(told.value) and "row 3" in str(told.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("time,price\n", "lacks the columns carbon", id="column"),
        pytest.param(f"{HEADER}{hour(0)},1\n", "needs at least two", id="one-row"),
        pytest.param("", "is empty", id="empty"),
    ],
)
def test_a_file_that_is_no_series_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(BadInput, match=reason):
        read_series(written(tmp_path, text), CARBON)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"nowhere\.csv cannot be read"):
        read_series(tmp_path / "nowhere.csv", CARBON)


def test_a_changed_file_is_read_anew(tmp_path: Path) -> None:
    rows = f"{hour(0)},1\n{hour(1)},2\n"
    path = written(tmp_path, HEADER + rows)
    assert read_series(path, CARBON).rows == 2
    written(tmp_path, f"{HEADER}{rows}{hour(2)},3\n")
    assert read_series(path, CARBON).rows == 3


@given(st.sets(st.integers(0, 300), min_size=2, max_size=80))
def test_known_values_stay_and_all_else_is_nan(
    tmp_path_factory: pytest.TempPathFactory, hours: set[int]
) -> None:
    text = HEADER + "".join(f"{hour(n)},{n}\n" for n in sorted(hours))
    series = read_series(written(tmp_path_factory.mktemp("grid"), text), CARBON)
    assert (np.diff(series.times_s) > 0).all()
    known = np.isfinite(series.values)
    assert series.values[known].tolist() == sorted(hours)
    assert ((series.times_s - JUNE_S)[known] / 3600).tolist() == sorted(hours)


@pytest.mark.skipif(not DATA.is_dir(), reason=f"no data sets at {DATA}; set GREENSCHED_DATA")
@pytest.mark.parametrize(
    ("folder", "pattern", "limits", "files"),
    [
        ("sustain-cluster-carbon", "ci_lca_g_per_kwh", CARBON_LIMITS_G_PER_KWH, 14),
        ("sustain-cluster-prices", "price_", PRICE_LIMITS_PER_MWH, 16),
    ],
)
def test_the_published_series_are_read_whole(
    folder: str, pattern: str, limits: tuple[float, float], files: int
) -> None:
    paths = sorted((DATA / folder).glob("*.csv.gz"))
    assert len(paths) == files
    for path in paths:
        with gzip.open(path, "rt") as file:
            header = file.readline().strip().split(",")
        (column,) = (name for name in header if name.startswith(pattern))
        series = read_series(path, WantedColumn("datetime_utc", column, limits))
        assert (np.diff(series.times_s) == 3600).all(), path
        assert np.isfinite(series.values).sum() == series.rows, path


@pytest.mark.skipif(not DATA.is_dir(), reason=f"no data sets at {DATA}; set GREENSCHED_DATA")
def test_the_holes_in_german_prices_are_found() -> None:
    path = DATA / "sustain-cluster-prices" / "DE-LU_2020-2023_hourly.csv.gz"
    column = WantedColumn("datetime_utc", "price_eur_per_mwh", PRICE_LIMITS_PER_MWH)
    series = read_series(path, column)
    assert len(series.gaps) == 10
    assert np.isnan(series.values[:-1]).sum() == series.times_s.size - 1 - series.rows
