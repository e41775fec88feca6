"""Opitz's suspended trainings: a made-up recording by hand, then the published ones."""

import os
from pathlib import Path

import numpy as np
import pytest

from greensched_core.errors import BadInput
from greensched_simulator.phase_jobs.phases import Phase, PhasedJob, duration_s, spent
from greensched_simulator.reproductions import opitz

ROOT = Path(__file__).parents[3]
DATA = Path(os.environ.get("GREENSCHED_DATA") or ROOT.parent / "shared" / "data")
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"no published data in {DATA}")

EVENTS = ((1032.0, "start program"), (1036.0, "after load data"), (1037.0, "Start training"))


def recording(*events: tuple[float, str]) -> opitz.Recording:
    """100 s from 1000 on, a sample every 10 s: 50 W, from 1030 on 60, 70 … 120 W."""
    power_w = np.array([50.0, 50.0, 50.0, 60.0, 70.0, 80.0, 90.0, 100.0, 110.0, 120.0])
    return opitz.Recording(1000.0, 1100.0, power_w, events)


@needs_data
def test_opitz_comes_out() -> None:
    lines = opitz.reproduce(DATA)
    assert len(lines) == 8
    assert [line for line in lines if not line.is_equal] == []


@needs_data
def test_the_files_are_read_as_they_were_before() -> None:
    ours = {(line.case, line.figure): line.ours for line in opitz.reproduce(DATA)}
    assert ours["measured, full", "energy, kJ"] == pytest.approx(12.98, abs=0.005)
    assert ours["measured, saved", "energy, kJ"] == pytest.approx(13.95, abs=0.005)
    assert ours["measured, unsaved", "energy, kJ"] == pytest.approx(15.58, abs=0.005)
    assert ours["measured, saved", "penalty, %"] == pytest.approx(7.46, abs=0.05)
    assert ours["measured, unsaved", "penalty, %"] == pytest.approx(20.0, abs=0.05)
    assert ours["phases, saved", "penalty, %"] == pytest.approx(8.9, abs=0.05)
    assert ours["phases, unsaved", "penalty, %"] == pytest.approx(23.0, abs=0.05)


@needs_data
def test_a_resumed_run_starts_up_sooner_than_the_first() -> None:
    folder = DATA / opitz.FOLDER
    (file,) = folder.glob("roberta_continue_after_saving_*.measurements.csv")
    found = opitz.startup_of(opitz.read_recording(file))
    assert [round(phase.duration_s, 2) for phase in found] == [5.34, 8.20, 6.33]
    assert [round(phase.power_w, 1) for phase in found] == [58.7, 50.1, 66.1]
    assert duration_s(found) < duration_s(opitz.JOB.startup)


@needs_data
def test_samples_are_50_ms_apart() -> None:
    for file in (DATA / opitz.FOLDER).glob("roberta_full_*.measurements.csv"):
        read = opitz.read_recording(file)
        apart_s = (read.end_s - read.begin_s) / read.power_w.size
        assert apart_s == pytest.approx(0.05025, abs=1e-5)


def test_the_table_of_phases_alone_tells_too_much() -> None:
    # 1,348 J of startup and 1,813 J of training on 12,874 J; published are 7.5 and 21.2 %.
    found = opitz.penalties_percent(opitz.JOB)
    assert spent(opitz.JOB).energy_j == pytest.approx(12_874.0, abs=0.5)
    assert found["saved"] == pytest.approx(10.47, abs=0.01)
    assert found["unsaved"] == pytest.approx(24.55, abs=0.01)


def test_the_penalty_is_the_startup_and_what_was_not_saved() -> None:
    restart = (Phase("resume", 10.0, 64.37),)  # 643.7 J, a twentieth of the run
    found = opitz.penalties_percent(PhasedJob(opitz.JOB.startup, opitz.JOB.work, restart))
    assert found["saved"] == pytest.approx(5.0, abs=0.001)
    assert found["unsaved"] == pytest.approx(5.0 + 100.0 * 1_812.923 / 12_874.009, abs=0.001)


@pytest.mark.parametrize(
    ("from_s", "until_s", "expected_j"),
    [
        pytest.param(1030.0, 1050.0, 1_300.0, id="whole-samples"),
        pytest.param(1035.0, 1042.5, 475.0, id="parts-of-samples"),
        pytest.param(1041.0, 1043.0, 140.0, id="within-one"),
        pytest.param(990.0, 1010.0, 500.0, id="nothing-is-known-before"),
    ],
)
def test_a_sample_holds_until_the_next(from_s: float, until_s: float, expected_j: float) -> None:
    assert recording().energy_j(from_s, until_s) == pytest.approx(expected_j)


def test_the_program_runs_from_30_s_on_until_it_exits() -> None:
    assert recording((1055.0, "Exit")).program_j == pytest.approx(600.0 + 700.0 + 400.0)


def test_phases_of_the_startup_lie_between_events() -> None:
    found = opitz.startup_of(recording(*EVENTS))
    assert found == (
        Phase("start", 2.0, 60.0), Phase("imports", 4.0, 60.0), Phase("load data", 1.0, 60.0)
    )  # fmt: skip


def test_an_event_that_is_missing_is_reported() -> None:
    with pytest.raises(BadInput, match="has no event 'Exit'"):
        _ = recording(*EVENTS).program_j


def test_a_recording_ends_with_its_begin_and_end(tmp_path: Path) -> None:
    file = tmp_path / "run.measurements.csv"
    (tmp_path / "run.events.csv").write_text("1005.5, start program\n1010.0, Exit\n")
    file.write_text("50000\n60000\n1000.0\n1020.0\n")
    read = opitz.read_recording(file)
    assert (read.begin_s, read.end_s, read.power_w.tolist()) == (1000.0, 1020.0, [50.0, 60.0])
    assert read.at_s("Exit") == 1010.0
    file.write_text("50000\n60000\n")
    with pytest.raises(BadInput, match="does not end with"):
        opitz.read_recording(file)
    file.write_text("50000\nsixty\n1000.0\n1020.0\n")
    with pytest.raises(BadInput, match="cannot be read"):
        opitz.read_recording(file)


def test_files_that_are_missing_are_reported(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="has no file roberta_full_"):
        opitz.reproduce(tmp_path)
