"""Runs that are interrupted, killed, or not alone: nothing looks whole, nothing of others goes."""

from pathlib import Path, PosixPath
from typing import Any

import numpy as np
import pytest

from greensched_core.errors import BadInput
from greensched_simulator.policy import policy_named
from greensched_simulator.results.comparison import Round
from greensched_simulator.results.run_folder import RecordedRun, RunFolder, read_run
from greensched_simulator.results.unfinished import Unfinished
from greensched_simulator.runs.outcome import outcome_of
from greensched_simulator.runs.simulation import bill_of
from greensched_simulator.testing.small_worlds import in_one_piece
from greensched_simulator.world.scenario_loading import load_scenario
from greensched_simulator.world.world import World

POLICY = policy_named("carbon-time")


@pytest.fixture
def run(small_file: Path) -> RecordedRun:
    return RecordedRun(load_scenario(small_file), small_file, (POLICY,), None, (1,), (), "now")


@pytest.fixture
def one_round(small_world: World) -> Round:
    """One policy, which starts all on arrival."""
    schedule = in_one_piece(np.array([0.0, 600.0]), np.array([3600.0, 2400.0]), np.arange(2))
    outcome = outcome_of(small_world, schedule, bill_of(small_world, schedule, 3600.0), 3600.0)
    return Round(small_world, (POLICY,), (schedule,), (outcome,))


class InterruptedPath(PosixPath):
    """A path whose folder is made, and then Ctrl-C is pressed."""

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        Path(self).mkdir(mode, parents, exist_ok)
        raise KeyboardInterrupt


def test_an_interruption_while_the_folder_is_made_leaves_nothing(tmp_path: Path) -> None:
    unfinished = Unfinished(InterruptedPath(tmp_path / "out"))
    with pytest.raises(KeyboardInterrupt):
        unfinished.begin()
    assert unfinished.path.is_dir()
    unfinished.leave()
    assert not (tmp_path / "out").exists()


def test_a_run_of_no_round_leaves_nothing(tmp_path: Path) -> None:
    run: Any = None  # is not looked at before a round is there
    with RunFolder(tmp_path / "none", run):
        pass
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("is_there", [False, True], ids=["new-folder", "empty-folder"])
def test_an_interrupted_run_looks_whole_at_no_time_and_leaves_nothing(
    run: RecordedRun, one_round: Round, tmp_path: Path, is_there: bool
) -> None:
    out = tmp_path / "out"
    if is_there:
        out.mkdir()
    with pytest.raises(KeyboardInterrupt), RunFolder(out, run) as folder:
        folder.add(one_round)
        assert [path.name for path in out.iterdir()] == [".unfinished"]
        with pytest.raises(BadInput, match="is not the folder of a finished run"):
            read_run(out)
        with pytest.raises(BadInput, match="is in use by another run"):
            RunFolder(out, run)  # nobody else writes there meanwhile
        raise KeyboardInterrupt
    assert out.exists() == is_there
    with RunFolder(out, run) as folder:  # so that it can be named again at once
        folder.add(one_round)
        assert folder.finish().folder == out


def test_of_two_runs_at_once_the_one_that_wrote_first_is_kept(
    run: RecordedRun, one_round: Round, tmp_path: Path
) -> None:
    """Both found the folder empty when they began to simulate."""
    out = tmp_path / "out"
    quick, slow = RunFolder(out, run), RunFolder(out, run)
    with quick:
        quick.add(one_round)
        with pytest.raises(BadInput, match="is in use by another run"), slow:
            slow.add(one_round)
        finished = quick.finish()
    assert (quick.is_whole, slow.is_whole) == (True, False)
    assert read_run(out).results == finished.results


def test_a_run_that_comes_late_leaves_the_rows_of_one_that_ended_before(
    run: RecordedRun, one_round: Round, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    late = RunFolder(out, run)
    with RunFolder(out, run) as quick:
        quick.add(one_round)
        quick.finish()
    rows = {path.name: path.read_bytes() for path in out.iterdir()}
    with pytest.raises(BadInput, match="is not empty"), late:
        late.add(one_round)
    assert not late.is_whole
    assert {path.name: path.read_bytes() for path in out.iterdir()} == rows


def test_what_others_put_into_the_folder_of_a_run_is_neither_replaced_nor_deleted(
    run: RecordedRun, one_round: Round, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with pytest.raises(BadInput, match=r"got run\.json from another program during the run"):
        with RunFolder(out, run) as folder:
            folder.add(one_round)
            (out / "run.json").write_text("theirs")
            folder.finish()
    assert [path.name for path in out.iterdir()] == ["run.json"]
    assert (out / "run.json").read_text() == "theirs"


def test_files_that_cannot_all_be_moved_to_their_place_are_all_undone(tmp_path: Path) -> None:
    place = Unfinished(tmp_path / "out")
    place.begin()
    (place.path / "rows.csv").touch()
    with pytest.raises(FileNotFoundError):
        place.settle(["rows.csv", "not-there.csv"])
    assert (place.folder / "rows.csv").is_file() and not place.is_whole
    place.leave()
    assert not place.folder.exists()


def test_what_a_killed_run_left_is_reported_with_its_path(run: RecordedRun, tmp_path: Path) -> None:
    left = tmp_path / "out" / ".unfinished"
    left.mkdir(parents=True)
    with pytest.raises(BadInput, match=f"left by a killed one: .* delete {left}$"):
        RunFolder(left.parent, run)
    left.rmdir()
    RunFolder(left.parent, run)
