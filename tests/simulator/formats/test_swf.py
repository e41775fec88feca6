import gzip
import os
from pathlib import Path

import pytest

from greensched_core.errors import BadInput
from greensched_simulator.formats.traces import load_trace
from greensched_simulator.formats.workload import Task

DATA = Path(os.environ.get("GREENSCHED_DATA") or Path(__file__).parents[4] / "shared" / "data")
LUBLIN = DATA / "rlscheduler" / "lublin_256.swf.gz"
#      number submit wait run alloc cpu used request time memory status, and seven that are not read
WHOLE = "1 10 5 100 8 -1 2048 16 3600 4096 1 3 1 -1 0 -1 -1 -1"
BARE = "2 20 -1 50 4 -1 -1 -1 -1 -1 1 -1 -1 -1 0 -1 -1 -1"


def written(folder: Path, *lines: str) -> Path:
    path = folder / "jobs.swf"
    path.write_text("; Version: 2\n;\n" + "\n".join(lines) + "\n")
    return path


def test_a_job_asks_for_what_it_requested(tmp_path: Path) -> None:
    (task,) = load_trace(written(tmp_path, WHOLE)).tasks
    assert task == Task("job-1", 10.0, 100.0, 16.0, 16 * 4096 * 1024.0, estimate_s=3600.0)


def test_what_was_not_requested_is_what_was_given_and_the_assumption_is_reported(
    tmp_path: Path,
) -> None:
    trace = load_trace(written(tmp_path, BARE))
    assert trace.tasks == (Task("job-2", 20.0, 50.0, 4.0, 4 * 4.0 * 2**30),)
    assert any("requested processors are missing" in note for note in trace.notes)
    assert any("4 GiB per core are assumed" in note for note in trace.notes)


def test_memory_that_was_used_stands_in_for_memory_requested(tmp_path: Path) -> None:
    trace = load_trace(written(tmp_path, WHOLE.replace("4096", "-1")))
    assert trace.tasks[0].memory_bytes == 16 * 2048 * 1024
    assert any("the used memory is taken" in note for note in trace.notes)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        pytest.param(BARE.replace("50", "-1"), "run_time is -1, not above 0", id="never-ran"),
        pytest.param(BARE.replace("50", "0"), "run_time is 0, not above 0", id="no-time"),
        pytest.param(BARE.replace("20", "-1"), "submit_time is -1, less than 0", id="no-submit"),
        pytest.param(BARE.replace("4 -1", "-1 -1"), "allocated_processors is -1", id="no-cores"),
        pytest.param(BARE.replace(" 1 ", " 3 "), "status 3 marks a part of a job", id="part"),
        pytest.param(BARE[:-3], "17 cells, but the header names 18", id="short"),
        pytest.param(WHOLE, "name 'job-1' was given before, in row 3", id="twice"),
        pytest.param(
            BARE.replace("50", "fifty"), "run_time 'fifty' is not a number", id="no-number"
        ),
    ],
)
def test_a_line_at_fault_is_reported_with_its_number(
    tmp_path: Path, line: str, reason: str
) -> None:
    path = written(tmp_path, WHOLE, line)
    with pytest.raises(BadInput) as told:
        load_trace(path)
    assert f"row 4: {reason}" in str(told.value)
    skipped = load_trace(path, skip_faulty=True)
    assert [task.name for task in skipped.tasks] == ["job-1"]
    assert {fault.row for fault in skipped.faults} == {4}


def test_a_file_without_jobs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="holds no jobs"):
        load_trace(written(tmp_path))


def test_a_broken_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cut.swf.gz"
    path.write_bytes(gzip.compress(WHOLE.encode() * 9)[:30])
    with pytest.raises(BadInput, match="cannot be read as SWF"):
        load_trace(path)


@pytest.mark.skipif(not LUBLIN.is_file(), reason=f"no {LUBLIN}; set GREENSCHED_DATA")
def test_the_lublin_trace_is_read_whole() -> None:
    trace = load_trace(LUBLIN)
    assert (len(trace.tasks), trace.faults) == (10_000, ())
    assert trace.tasks[0] == Task("job-1", 5094.0, 12072.0, 16.0, 16 * 4.0 * 2**30)
    assert max(task.cpu_cores for task in trace.tasks) <= 256
