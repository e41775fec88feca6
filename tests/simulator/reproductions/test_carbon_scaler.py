"""CarbonScaler's savings where the data is, and its bill by hand."""

import os
from pathlib import Path

import numpy as np
import pytest

from greensched_core.errors import BadInput
from greensched_simulator.reproductions import carbon_scaler as told

ROOT = Path(__file__).parents[3]
DATA = Path(os.environ.get("GREENSCHED_DATA") or ROOT.parent / "shared" / "data")
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"no published data in {DATA}")

# The second node adds 8 of work for as many watts as the first has for 10.
PROFILE = told.ScalingProfile(np.array([10.0, 18.0]), np.array([100.0, 200.0]))


@needs_data
def test_all_figures_come_out() -> None:
    lines = told.reproduce(DATA)
    assert len(lines) == 10
    assert [line for line in lines if not line.is_equal] == []


@needs_data
def test_the_profile_is_the_one_of_the_repository() -> None:
    profile = told.read_profile(DATA / "carbonscaler-profiles" / "nbody100k.csv")
    assert profile.work_per_h.size == 7
    assert [float(column[0]) for column in profile] == pytest.approx([1757.9, 54.78], abs=0.05)


@needs_data
def test_every_day_of_2023_but_the_last_two_begins_a_job() -> None:
    hours = told.read_windows(DATA, "CA-ON")
    assert hours.shape == (363, 36)
    np.testing.assert_array_equal(hours[:-1, 24:], hours[1:, :12])
    assert np.isfinite(hours).all()


def test_a_job_emits_its_watts_times_the_intensity_of_the_hours_it_takes() -> None:
    carbon = np.array([[300.0, 100.0, 200.0], [100.0, 100.0, 100.0]])
    # 18 in the hour of 100 g/kWh, then 2 of 10 in that of 200; then two hours of one node.
    assert told.emitted_g(carbon, PROFILE, 20.0) == pytest.approx([20.0 + 4.0, 20.0])
    # One node at 100 and at 200 g/kWh; two nodes that are kept together: 18, then 2 of 18.
    assert told.emitted_g(carbon, PROFILE.only(1), 20.0) == pytest.approx([30.0, 20.0])
    assert told.emitted_g(carbon, PROFILE.only(2), 20.0) == pytest.approx(
        [24.444, 22.222], abs=1e-3
    )


def test_a_job_that_cannot_be_done_in_time_is_refused() -> None:
    with pytest.raises(BadInput, match="55 of work cannot be done within 3 h"):
        told.emitted_g(np.ones((1, 3)), PROFILE, 55.0)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        pytest.param("0,0,0\n2,18,200\n", "nodes is 2, not 1", id="a-size-is-missing"),
        pytest.param("0,0,0\n1,ten,100\n", "throughput 'ten' is not a number", id="no-number"),
        pytest.param("0,0,0\n", "has no row for one node", id="no-size-at-all"),
    ],
)
def test_a_profile_that_is_none_is_refused(tmp_path: Path, rows: str, said: str) -> None:
    file = tmp_path / "profile.csv"
    file.write_text(f"nodes,throughput,power\n{rows}", encoding="utf-8")
    with pytest.raises(BadInput, match=said):
        told.read_profile(file)
