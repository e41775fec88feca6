"""Published figures come out again; the data is not ours, so without it these are skipped."""

import os
from pathlib import Path

import numpy as np
import pytest

from greensched_simulator.reproductions import gaia
from greensched_simulator.reproductions.tables import ComparedLine

ROOT = Path(__file__).parents[3]
DATA = Path(os.environ.get("GREENSCHED_DATA") or ROOT.parent / "shared" / "data")
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"no published data in {DATA}")
HOUR = gaia.HOUR


def carbon(*hourly: float) -> gaia.Carbon:
    return gaia.Carbon(np.array([*hourly, *[500.0] * 60]))


def jobs(arrival: int, length: int) -> gaia.GaiaJobs:
    return gaia.GaiaJobs(np.array([arrival]), np.array([length]), np.array([1.0]))


@needs_data
def test_gaia_comes_out_exactly() -> None:
    lines = gaia.reproduce(DATA)
    assert len(lines) == 60
    assert [line for line in lines if not line.is_equal] == []


@needs_data
def test_the_trace_is_the_one_of_the_paper() -> None:
    read = gaia.read_jobs(DATA / "gaia-cluster-traces" / "pai_1k.csv.gz")
    assert read.arrival.size == 1000
    assert read.cpus @ read.length / HOUR == pytest.approx(3191.9, abs=0.05)


def test_lowest_slot_starts_when_the_cleanest_hour_of_the_clock_begins() -> None:
    found = gaia.shift("lowest-slot", jobs(100, 360), carbon(300, 200, 100, 400, 400, 400, 50))
    assert found.wait.tolist() == [6 * HOUR - 100]
    assert found.carbon.tolist() == [360 * 50.0]


def test_lowest_window_starts_a_whole_number_of_hours_after_arrival() -> None:
    found = gaia.shift("lowest-window", jobs(100, 360), carbon(300, 200, 100, 400, 400, 400, 400))
    assert found.wait.tolist() == [2 * HOUR]


def test_wait_awhile_runs_in_the_cleanest_pieces_and_waits_until_the_last() -> None:
    found = gaia.shift("wait-awhile", jobs(0, HOUR + 10), carbon(300, 100, 400, 200, 400, 400, 400))
    assert found.carbon.tolist() == [HOUR * 100.0 + 10 * 200.0]
    assert found.wait.tolist() == [3 * HOUR + 10 - (HOUR + 10)]


def test_ecovisor_runs_on_once_it_has_waited_long_enough() -> None:
    found = gaia.shift("ecovisor", jobs(0, 100), carbon(*[400] * 7, *[100] * 8))
    assert found.wait.tolist() == [6 * HOUR]
    assert found.carbon.tolist() == [100 * 400.0]


def test_a_figure_is_equal_within_its_tolerance_and_not_beyond() -> None:
    assert ComparedLine("case", "figure", 0.5, 0.5004, 0.0005).is_equal
    assert not ComparedLine("case", "figure", 0.5, 0.5006, 0.0005).is_equal
