"""Let's Wait Awhile by hand, and its figures where its data is."""

import os
from pathlib import Path

import numpy as np
import pytest

from greensched_policies.costs.cost import Floats
from greensched_simulator.reproductions import lets_wait_awhile as told
from greensched_simulator.reproductions.tables import ComparedLine

ROOT = Path(__file__).parents[3]
DATA = Path(os.environ.get("GREENSCHED_DATA") or ROOT.parent / "shared" / "data")
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"no published data in {DATA}")

WEDNESDAY, THURSDAY, FRIDAY, SATURDAY, SUNDAY, MONDAY = range(6)  # from 2020-01-01 on


def slot(day: int, hour: float) -> int:
    return day * told.DAY + int(hour * told.HOUR)


def grid(*values: float) -> Floats:
    return np.array([*values, *[1000.0] * 20])


def jobs(start: int, length: int) -> told.MlJobs:
    return told.MlJobs(np.array([start]), np.array([length]))


@pytest.fixture(scope="module")
def lines() -> list[ComparedLine]:
    return told.reproduce(DATA)


@needs_data
def test_all_figures_come_out(lines: list[ComparedLine]) -> None:
    assert len(lines) == 54
    assert [line for line in lines if not line.is_equal] == []


@needs_data
def test_without_an_error_every_published_digit_comes_out(lines: list[ComparedLine]) -> None:
    exact = [line for line in lines if "error 5%" not in line.case]
    assert len(exact) == 30
    assert [line for line in exact if round(line.ours, 2) != line.published] == []


@needs_data
@pytest.mark.parametrize(("zone", "slots"), [("DE", 17_999), ("GB", 18_000), ("FR", 17_998)])
def test_the_series_are_those_of_the_artifact(zone: str, slots: int) -> None:
    actual = told.read_slots(DATA / "lets-wait-awhile" / told.FILES[zone])
    assert actual.size == slots
    assert np.isfinite(actual).all()


def test_the_jobs_are_those_of_the_artifact() -> None:
    found = told.ml_jobs()
    assert found.start.size == found.length.size == 3387
    assert found.start[:5].tolist() == [19, 21, 23, 23, 24]
    assert found.length[:5].tolist() == [106, 101, 69, 30, 45]
    assert found.length.sum() == 311_252


def test_jobs_start_on_workdays_from_nine_until_half_past_four() -> None:
    day, of_the_day = np.divmod(told.ml_jobs().start, told.DAY)
    assert set((day % 7).tolist()) == {WEDNESDAY, THURSDAY, FRIDAY, MONDAY, MONDAY + 1}
    assert (of_the_day.min(), of_the_day.max()) == (slot(0, 9), slot(0, 16.5))


def test_a_file_is_read_from_2020_on_and_without_its_quarters(tmp_path: Path) -> None:
    file = tmp_path / "ci.csv"
    times = ("2019-12-31 23:30:00", "2020-01-01 00:00:00", "2020-01-01 00:15:00")
    rows = [f"{time},{100 + place}" for place, time in enumerate((*times, "2020-01-01 00:30:00"))]
    file.write_text("\n".join(["Time,Carbon Intensity", *rows, ""]), encoding="utf-8")
    assert told.read_slots(file).tolist() == [101.0, 103.0]


@pytest.mark.parametrize(
    ("finish", "until"),
    [
        pytest.param((THURSDAY, 8.5), (THURSDAY, 9), id="before-work"),
        pytest.param((THURSDAY, 9), (THURSDAY, 9), id="as-work-begins"),
        pytest.param((THURSDAY, 17), (THURSDAY, 17), id="as-work-ends"),
        pytest.param((THURSDAY, 17.5), (FRIDAY, 9), id="after-work"),
        pytest.param((FRIDAY, 17.5), (SATURDAY, 9), id="on-a-friday-night-saturday-as-published"),
        pytest.param((SATURDAY, 3), (MONDAY, 9), id="on-a-saturday-morning"),
        pytest.param((SATURDAY, 23.5), (MONDAY, 9), id="on-a-saturday-night"),
        pytest.param((SUNDAY, 3), (MONDAY, 9), id="on-a-sunday"),
        pytest.param((MONDAY, 0), (MONDAY, 9), id="on-a-monday-before-work"),
    ],
)
def test_results_can_wait_for_the_next_workday(
    finish: tuple[int, float], until: tuple[int, float]
) -> None:
    assert told.next_workday(np.array([slot(*finish)])).tolist() == [slot(*until)]


@pytest.mark.parametrize(
    ("finish", "until"),
    [
        pytest.param((WEDNESDAY, 12), (THURSDAY, 9), id="for-thursday"),
        pytest.param((THURSDAY, 9), (THURSDAY, 9), id="not-at-all-when-it-begins"),
        pytest.param((THURSDAY, 9.5), (MONDAY, 9), id="for-monday-when-it-has-begun"),
        pytest.param((MONDAY, 9.5), (MONDAY + 3, 9), id="for-thursday-again"),
    ],
)
def test_results_can_wait_for_a_meeting_twice_a_week(
    finish: tuple[int, float], until: tuple[int, float]
) -> None:
    assert told.semi_weekly(np.array([slot(*finish)])).tolist() == [slot(*until)]


@pytest.mark.parametrize(
    ("shift", "mean"),
    [
        pytest.param(0, 100.0, id="at-one-o-clock"),
        pytest.param(1, 100.0, id="the-low-is-out-of-reach"),
        pytest.param(2, 40.0, id="every-night-in-the-low"),
        # The first night's window would begin before the year: 364 nights, divided by 365.
        pytest.param(3, 40.0 * 364 / 365, id="the-first-night-is-dropped-and-counted"),
    ],
)
def test_the_nightly_job_moves_either_way(shift: int, mean: float) -> None:
    actual = np.full(told.DAYS * told.DAY, 100.0)
    actual[told.NIGHTLY_SLOT + 2 :: told.DAY] = 40.0
    assert told.nightly(actual, actual, shift) == pytest.approx(mean)


def test_the_nightly_job_is_moved_by_the_forecast_to_the_first_of_equal_slots() -> None:
    actual = np.tile(np.linspace(0.0, 47.0, told.DAY), told.DAYS)
    assert told.nightly(actual, np.zeros(actual.size), 2) == pytest.approx(0.0)
    assert told.nightly(actual, -actual, 2) == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("deadline", "total"),
    [
        pytest.param(2, 9.0 + 5.0, id="of-slot-2-it-takes-slot-2-too"),
        pytest.param(3, 5.0 + 2.0, id="it-starts-two-late"),
        pytest.param(4, 5.0 + 2.0, id="it-stays-before-the-rise"),
    ],
)
def test_a_job_in_one_piece_runs_where_the_sum_is_least(deadline: int, total: float) -> None:
    actual = grid(20.0, 9.0, 5.0, 2.0, 8.0)
    found = told.in_one_piece(jobs(0, 2), np.array([deadline]), actual, actual)
    assert found == pytest.approx(total)


def test_a_job_is_billed_on_what_was_and_not_on_the_forecast() -> None:
    actual, forecast = grid(1.0, 2.0, 4.0, 8.0), grid(9.0, 9.0, 3.0, 3.0)
    until = np.array([3])
    assert told.in_one_piece(jobs(0, 2), until, actual, forecast) == pytest.approx(12.0)
    assert told.in_pieces(jobs(0, 2), until, actual, forecast) == pytest.approx(12.0)


@pytest.mark.parametrize(
    ("values", "total"),
    [
        pytest.param((1.0, 9.0, 2.0, 8.0, 3.0), 3.0, id="its-cheapest-slots"),
        pytest.param((5.0, 9.0, 9.0, 9.0, 4.0), 9.0, id="the-last-one-too"),
        pytest.param((1.0, 2.0, 9.0, 2.0, 9.0), 5.0, id="all-that-are-alike-as-published"),
        pytest.param((9.0, 9.0, 9.0, 7.0, 8.0), 15.0, id="not-beyond-the-deadline"),
    ],
)
def test_a_job_in_pieces_runs_in_the_cheapest_slots(
    values: tuple[float, ...], total: float
) -> None:
    actual = np.array([*values, *[0.0] * 20])
    found = told.in_pieces(jobs(0, 2), np.array([4]), actual, actual)
    assert found == pytest.approx(total)


def test_jobs_of_different_deadlines_do_not_mind_each_other() -> None:
    actual = np.random.default_rng(3).uniform(50.0, 400.0, 300)
    many = told.MlJobs(np.array([3, 50, 51]), np.array([4, 9, 30]))
    until = many.start + many.length + np.array([0, 40, 7])
    for run in (told.in_one_piece, told.in_pieces):
        alone = [
            run(jobs(start, length), np.array([end]), actual, actual)
            for start, length, end in zip(*many, until, strict=True)
        ]
        assert run(many, until, actual, actual) == pytest.approx(sum(alone))


def test_a_forecast_errs_by_a_share_of_the_mean_and_the_same_each_time() -> None:
    actual = np.linspace(100.0, 300.0, 20_000)
    seen = told.forecasts(actual, 0.05)
    assert len(seen) == 10
    assert all(float((one - actual).std()) == pytest.approx(10.0, rel=0.03) for one in seen)
    assert all((a == b).all() for a, b in zip(seen, told.forecasts(actual, 0.05), strict=True))
    assert told.forecasts(actual, 0.0)[0] is actual
