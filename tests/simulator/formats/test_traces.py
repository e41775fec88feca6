import gzip
import math
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greensched_core.errors import BadInput
from greensched_simulator.formats.traces import FORMATS, TRACE_OPTIONS, load_trace
from greensched_simulator.formats.workload import Task, as_pods
from greensched_simulator.scenario.trace_workload import TraceWorkload

PLAIN = "name,arrival_s,runtime_s,cpu_cores,memory_mib,gpus\n"
OPENB = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
    "creation_time,deletion_time,scheduled_time\n"
)
DATA = Path(os.environ.get("GREENSCHED_DATA") or Path(__file__).parents[4] / "shared" / "data")


def written(folder: Path, text: str, name: str = "trace.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_plain_trace_is_read_in_order_of_arrival(tmp_path: Path) -> None:
    path = written(tmp_path, PLAIN + "late,9,60,2,1024,0\nearly,1,30.5,0.5,512,2\n")
    trace = load_trace(path)
    assert trace.tasks == (
        Task("early", 1.0, 30.5, 0.5, 512 * 2**20, 2),
        Task("late", 9.0, 60.0, 2.0, 1024 * 2**20, 0),
    )
    assert "sorted by arrival" in trace.notes[0]
    assert trace.span_s == 8


@pytest.mark.parametrize(
    ("column", "notes"),
    [
        ("deadline", ("the column deadline is not read (close: deadline_s)",)),
        ("gpu_model", ("the column gpu_model is not read (close: gpu_models)",)),
        ("user", ()),
        ("deadline_s", ()),
    ],
)
def test_a_column_that_is_misspelt_is_reported(
    tmp_path: Path, column: str, notes: tuple[str, ...]
) -> None:
    header = PLAIN.replace("gpus\n", f"gpus,{column}\n")
    path = written(tmp_path, header + "a,0,60,1,512,0,90\n")
    assert load_trace(path).notes == notes


def test_a_row_may_give_the_share_of_a_gpus_watts_that_it_draws(tmp_path: Path) -> None:
    header = PLAIN.replace("gpus\n", "gpus,gpu_ratio\n")
    trace = load_trace(written(tmp_path, header + "a,0,1,1,1,1,0.95\nb,0,1,1,1,1,\n"))
    assert [task.gpu_ratio for task in trace.tasks] == [0.95, None]


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("-0.1", "gpu_ratio is -0.1, less than 0"),
        ("60", "gpu_ratio is 60, more than 1: it is a share, such as 0.6"),
        ("nan", "gpu_ratio 'nan' is not a number"),
    ],
)
def test_a_share_of_watts_outside_of_0_to_1_is_at_fault(
    tmp_path: Path, cell: str, reason: str
) -> None:
    header = PLAIN.replace("gpus\n", "gpus,gpu_ratio\n")
    with pytest.raises(BadInput, match=f"row 2: {reason}"):
        load_trace(written(tmp_path, header + f"a,0,1,1,1,1,{cell}\n"))


def test_a_job_without_a_worker_is_at_fault(tmp_path: Path) -> None:
    header = PLAIN.replace("gpus\n", "gpus,workers\n")
    with pytest.raises(BadInput, match="row 2: workers is 0, less than 1"):
        load_trace(written(tmp_path, header + "a,0,1,1,1,0,0\n"))


def test_whoever_plays_pods_gets_one_for_each_worker_and_nobody_waits(tmp_path: Path) -> None:
    header = PLAIN.replace("gpus\n", "gpus,workers,after\n")
    trace = load_trace(written(tmp_path, header + "a,0,1,1,1,0,3,\nb,1,1,1,1,0.5,,a\n"))
    assert [(task.workers, task.after, task.gpu_share) for task in trace.tasks] == [
        (3, (), 1.0), (1, ("a",), 0.5),
    ]  # fmt: skip
    pods = as_pods(trace)
    assert [task.name for task in pods.tasks] == ["a-0", "a-1", "a-2", "b"]
    assert {(task.workers, task.after, task.gpu_share) for task in pods.tasks} == {(1, (), 1.0)}
    assert pods.notes == (
        "1 tasks have several workers; each becomes a pod",
        "1 tasks wait for others, which is ignored here",
        "1 tasks request a part of a GPU and get a whole one",
    )


def test_models_are_separated_by_bars(tmp_path: Path) -> None:
    header = PLAIN.replace("gpus\n", "gpus,gpu_models\n")
    trace = load_trace(written(tmp_path, header + "a,0,1,1,1,1,T4|P100\n"))
    assert trace.tasks[0].gpu_models == ("T4", "P100")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        pytest.param("a,0,-1,1,1,0", "runtime_s is -1, not above 0", id="negative-runtime"),
        pytest.param("a,0,0,1,1,0", "runtime_s is 0, not above 0", id="no-runtime"),
        pytest.param("a,-1,1,1,1,0", "arrival_s is -1, less than 0", id="negative-arrival"),
        pytest.param("a,,1,1,1,0", "arrival_s is empty", id="gap"),
        pytest.param("a,soon,1,1,1,0", "arrival_s 'soon' is not a number", id="word"),
        pytest.param("a,nan,1,1,1,0", "arrival_s 'nan' is not a number", id="nan"),
        pytest.param("a,inf,1,1,1,0", "arrival_s 'inf' is not a number", id="infinite"),
        pytest.param("a,1_0,1,1,1,0", "arrival_s '1_0' is not a number", id="underscore"),
        pytest.param(
            "a,0,1,1,1,1.5", "gpus is 1.5: a part can be requested only", id="a-gpu-and-half"
        ),
        pytest.param("a,0,1,1,1,-1", "gpus is -1, less than 0", id="negative-gpu"),
        pytest.param("a,0,1,1,1", "5 cells, but the header names 6", id="short-row"),
        pytest.param("a,0,1,1,1,0,7", "7 cells, but the header names 6", id="long-row"),
        pytest.param("Big Job,0,1,1,1,0", "name 'Big Job' is not a Kubernetes name", id="name"),
        pytest.param("good,0,1,1,1,0", "name 'good' was given before, in row 2", id="duplicate"),
        pytest.param("", "the row is empty", id="empty-row"),
    ],
)
def test_a_row_at_fault_is_reported_with_its_number(tmp_path: Path, row: str, reason: str) -> None:
    path = written(tmp_path, f"{PLAIN}good,0,1,1,1,0\n{row}\nother,0,1,1,1,0\n")
    with pytest.raises(BadInput) as told:
        load_trace(path)
    assert f"row 3: {reason}" in str(told.value)
    skipped = load_trace(path, skip_faulty=True)
    assert [task.name for task in skipped.tasks] == ["good", "other"]
    assert [fault.row for fault in skipped.faults] == [3]


def test_a_refusal_names_the_option_that_leaves_faulty_rows_out(tmp_path: Path) -> None:
    path = written(tmp_path, f"{PLAIN}bad,0,-1,1,1,0\n")
    with pytest.raises(BadInput, match=r"1 fault; .* --skip-faulty .*ARGS=--skip-faulty"):
        load_trace(path)


def test_all_faults_are_reported_at_once_up_to_twenty(tmp_path: Path) -> None:
    path = written(tmp_path, PLAIN + "".join(f"t{i},0,-1,1,1,0\n" for i in range(25)))
    with pytest.raises(BadInput, match=r"(?s)25 faults.*row 2:.*row 21:.*and 5 more") as told:
        load_trace(path)
    assert "row 22" not in str(told.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "is empty", id="empty"),
        pytest.param("a,b\n1,2\n", "in no known format", id="unknown"),
        pytest.param("name,arrival_s,runtime_s\n", "lacks the columns cpu_cores", id="columns"),
        pytest.param(PLAIN, "holds no tasks", id="no-rows"),
        pytest.param(PLAIN.replace("gpus", "name"), "names a column twice", id="twice"),
        pytest.param("name,cpu_milli,memory_mib,num_gpu,gpu_milli\n", "creation_time", id="short"),
    ],
)
def test_a_file_that_is_no_trace_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        load_trace(written(tmp_path, text))


def test_formats_have_names_and_headers_of_their_own() -> None:
    assert len({each.name for each in FORMATS}) == len(FORMATS)
    for each in FORMATS:
        assert max(FORMATS, key=lambda other: other.share_of(each.columns)) is each


PACKED = gzip.compress(PLAIN.encode() * 9)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"\xff\xfe\x00binary", id="binary"),
        pytest.param(b'name,arrival_s\n"open', id="quote"),
        pytest.param(PACKED[:20], id="cut"),
        pytest.param(PACKED[:15] + b"\xff" * 20 + PACKED[35:], id="spoilt"),
    ],
)
def test_a_file_that_is_no_csv_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / ("broken.csv.gz" if content[:2] == b"\x1f\x8b" else "broken.csv")
    path.write_bytes(content)
    with pytest.raises(BadInput, match="cannot be read as CSV"):
        load_trace(path)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"nowhere\.csv"):
        load_trace(tmp_path / "nowhere.csv")


def test_a_part_of_a_gpu_becomes_a_whole_one_for_who_plays_pods_and_is_counted(
    tmp_path: Path,
) -> None:
    rows = (
        "p0,4000,1024,1,460,T4|P100,LS,Running,0,100,10\n"
        "p1,4000,1024,2,1000,,LS,Running,5,100,5\n"
        "p2,500,0,0,0,,LS,Pending,7,100,\n"
    )
    trace = load_trace(written(tmp_path, OPENB + rows))
    assert [task.gpus for task in trace.tasks] == [1, 2, 0]
    assert [task.runtime_s for task in trace.tasks] == [90, 95, 93]
    assert [task.cpu_cores for task in trace.tasks] == [4, 4, 0.5]
    assert trace.tasks[0].gpu_models == ("T4", "P100")
    assert [task.gpu_share for task in trace.tasks] == [0.46, 1.0, 1.0]
    pods = as_pods(trace)
    assert [task.gpu_share for task in pods.tasks] == [1.0, 1.0, 1.0]
    assert "1 tasks request a part of a GPU and get a whole one" in pods.notes
    assert any(note.startswith("1 tasks: never scheduled") for note in trace.notes)


@pytest.mark.parametrize(
    ("name", "unit", "runtime_s"),
    [
        pytest.param("pai_1k.csv", None, 3_000.0, id="seconds-by-name"),
        pytest.param("mine.csv", "s", 3_000.0, id="seconds-given"),
    ],
)
def test_gaia_in_seconds(tmp_path: Path, name: str, unit: None, runtime_s: float) -> None:
    path = written(tmp_path, "arrival_time,length,cpus\n0.0,3000,1\n60,3000,0.5\n", name)
    trace = load_trace(path, {"time_unit": unit} if unit else {})
    assert [task.runtime_s for task in trace.tasks] == [runtime_s] * 2
    assert trace.tasks[1].arrival_s == 60


def test_gaia_in_hours(tmp_path: Path) -> None:
    path = written(tmp_path, "arrival_time,length,cpus\n0.5,0.25,1\n", "pai-70k.csv")
    assert load_trace(path).tasks[0].runtime_s == 900
    assert load_trace(path).tasks[0].arrival_s == 1_800


@pytest.mark.parametrize(
    ("name", "unit", "message"),
    [
        pytest.param("mine.csv", None, "give --time-unit s or h", id="untold"),
        pytest.param("pai-70k.csv", "s", "implausible", id="hours-read-as-seconds"),
        pytest.param("azure-100k.csv", "s", "implausible", id="given-wins-over-the-name"),
    ],
)
def test_a_doubtful_time_unit_is_refused(
    tmp_path: Path, name: str, unit: None, message: str
) -> None:
    path = written(tmp_path, "arrival_time,length,cpus\n0.0,0.5,1\n", name)
    with pytest.raises(BadInput, match=message):
        load_trace(path, {"time_unit": unit} if unit else {})


def test_no_option_of_a_format_has_the_name_of_another_or_of_a_scenarios_field() -> None:
    names = [option.name for option in TRACE_OPTIONS]
    assert len({*names}) == len(names)
    assert {"file", *TraceWorkload.__annotations__}.isdisjoint(names)


def test_seconds_read_as_hours_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "arrival_time,length,cpus\n0.0,3000,1\n", "pai_1k.csv")
    with pytest.raises(BadInput, match="implausible"):
        load_trace(path, {"time_unit": "h"})


cell = st.text(
    alphabet=st.characters(codec="ascii", exclude_characters="\r\n\0"), max_size=6
) | st.integers(-5, 5).map(str)


@settings(max_examples=200)
@given(st.lists(st.lists(cell, max_size=7), min_size=1, max_size=8))
def test_no_file_crashes_the_reader_and_no_task_is_impossible(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]]
) -> None:
    text = PLAIN + "sound,0,1,1,1,0\n" + "\n".join(",".join(row) for row in rows)
    path = written(tmp_path_factory.mktemp("rows"), text)
    try:
        trace = load_trace(path, skip_faulty=True)
    except BadInput:
        return  # not even a CSV
    for task in trace.tasks:
        assert task.runtime_s > 0 and task.cpu_cores > 0 and task.arrival_s >= 0
        assert math.isfinite(task.memory_bytes) and task.memory_bytes >= 0 and task.gpus >= 0


@pytest.mark.skipif(not DATA.is_dir(), reason=f"no data sets at {DATA}; set GREENSCHED_DATA")
@pytest.mark.parametrize(
    ("name", "tasks", "faults"),
    [
        pytest.param("openb-gpu-2023/openb_pod_list_default.csv", 8_151, 1, id="openb"),
        pytest.param("openb-gpu-2023/openb_pod_list_gpuspec33.csv", 8_151, 1, id="openb-models"),
        pytest.param("gaia-cluster-traces/pai_1k.csv.gz", 1_000, 0, id="pai-1k"),
        pytest.param("gaia-cluster-traces/mustang-trace-2015-70k.csv.gz", 70_000, 0, id="mustang"),
        pytest.param("gaia-cluster-traces/azure-70k.csv.gz", 69_991, 0, id="azure"),
        pytest.param("gaia-cluster-traces/pai-70k.csv.gz", 69_998, 0, id="pai-70k"),
    ],
)
def test_the_published_traces_are_read(name: str, tasks: int, faults: int) -> None:
    trace = load_trace(DATA / name, skip_faulty=True)
    assert (len(trace.tasks), len(trace.faults)) == (tasks, faults)
