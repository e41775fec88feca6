"""Zeus's power caps: three made-up configurations by hand, then the published traces."""

import os
from pathlib import Path

import pytest

from greensched_core.errors import BadInput
from greensched_simulator.reproductions import zeus
from greensched_simulator.reproductions.zeus import ZeusMeasurement

ROOT = Path(__file__).parents[3]
DATA = Path(os.environ.get("GREENSCHED_DATA") or ROOT.parent / "shared" / "data")
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"no published data in {DATA}")
HEADER = "dataset,network,batch_size,optimizer,power_limit,time_per_epoch,average_power\n"

RUNS: zeus.Runs = {
    ("big",): {200: ZeusMeasurement(100.0, 180.0), 100: ZeusMeasurement(200.0, 90.0)},
    ("middling",): {200: ZeusMeasurement(10.0, 160.0), 100: ZeusMeasurement(12.5, 96.0)},
    ("odd",): {
        200: ZeusMeasurement(50.0, 200.0),
        150: ZeusMeasurement(62.5, 140.0),
        100: ZeusMeasurement(80.0, 80.0),
    },
}


@needs_data
def test_zeus_comes_out_exactly() -> None:
    lines = zeus.reproduce(DATA)
    assert len(lines) == 48
    assert [line for line in lines if not line.is_equal] == []


@needs_data
def test_the_a40_has_limits_at_which_not_all_was_measured() -> None:
    runs = zeus.hungry_runs(zeus.read_runs(DATA / zeus.FOLDER / "summary_power_a40.csv"))
    found = {limit_w: zeus.capped(runs, limit_w).configurations for limit_w in (125, 150, 175)}
    assert found == {125: 17, 150: 21, 175: 17}


@needs_data
def test_a_cap_near_60_percent_saves_a_quarter_of_the_energy_for_a_sixth_of_the_speed() -> None:
    for gpu, limit_w in (("v100", 150), ("a40", 175), ("rtx6000", 150)):
        runs = zeus.hungry_runs(zeus.read_runs(DATA / zeus.FOLDER / f"summary_power_{gpu}.csv"))
        found = zeus.capped(runs, limit_w)
        assert 0.14 <= 1.0 - found.throughput <= 0.185
        assert 0.20 <= 1.0 - found.energy_per_work <= 0.26


def test_each_figure_is_a_median_of_its_own() -> None:
    found = zeus.capped(RUNS, 100)
    assert found.throughput == 0.625  # of 0.5, 0.8, 0.625
    assert found.power == 0.5  # of 0.5, 0.6, 0.4
    assert found.energy_per_work == pytest.approx(0.75)  # of 1.0, 0.75, 0.64; not 0.5 / 0.625
    assert found.configurations == 3


def test_only_what_was_measured_at_a_limit_counts_there() -> None:
    found = zeus.capped(RUNS, 150)
    assert found == zeus.Capped(0.8, 0.7, 0.7 / 0.8, 1)
    with pytest.raises(ValueError, match="175 W"):
        zeus.capped(RUNS, 175)


@pytest.mark.parametrize(
    ("power_w", "is_kept"),
    [
        pytest.param(150.0, True, id="three-quarters-of-its-highest-limit"),
        pytest.param(149.9, False, id="less"),
    ],
)
def test_a_configuration_counts_if_it_draws_enough_at_its_highest_limit(
    power_w: float, is_kept: bool
) -> None:
    runs: zeus.Runs = {
        ("one",): {200: ZeusMeasurement(1.0, power_w), 100: ZeusMeasurement(1.0, 99.0)}
    }
    assert bool(zeus.hungry_runs(runs)) is is_kept


def test_a_file_with_a_doubled_or_empty_row_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "summary_power_v100.csv"
    file.write_text(HEADER + "d,n,8,adam,100,2.0,90\nd,n,8,adam,100,2.0,90\nd,n,8,adam,125,,90\n")
    with pytest.raises(BadInput, match=r"measured at 100 W before[\s\S]*time_per_epoch is empty"):
        zeus.read_runs(file)
