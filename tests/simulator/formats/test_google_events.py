import gzip
import random
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_core.errors import BadInput
from greensched_simulator.formats.google_events import GOOGLE_COLUMNS, CellMachine, parse_machine
from greensched_simulator.formats.traces import load_trace
from greensched_simulator.formats.workload import Task, Trace
from greensched_simulator.world.scenario_loading import load_scenario

LARGEST = CellMachine(cpu_cores=64.0, memory_bytes=256 * 2.0**30)
SUBMIT, SCHEDULE, EVICT, FAIL, FINISH, KILL, LOST, UPDATE_PENDING, UPDATE_RUNNING = range(9)
BEFORE, AFTER = 0, 2**63 - 1


def event(
    time_s: float, kind: object, *, job: object = 7, index: object = 0, missing: object = "",
    cpu: object = 0.125, memory: object = 0.0625,
) -> str:  # fmt: skip
    """One line of the table; times in seconds but for the two special ones."""
    time_us = time_s if time_s in (BEFORE, AFTER) else round(time_s * 1e6)
    machine = "" if kind == SUBMIT else 4155527081
    what = f"{job},{index},{machine},{kind}"
    return f"{time_us},{missing},{what},70s3v5qR=,2,9,{cpu},{memory},0.0004,0"


WHOLE = (event(700, SUBMIT), event(710, SCHEDULE), event(1010, FINISH))
OTHER = tuple(event(t, kind, job=8) for t, kind in ((600, SUBMIT), (601, SCHEDULE), (901, FINISH)))


def written(folder: Path, *lines: str, name: str = "part-00001-of-00500.csv") -> Path:
    path = folder / name
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def loaded(folder: Path, *lines: str, skip_faulty: bool = False) -> Trace:
    return load_trace(
        written(folder, *lines), {"largest_machine": LARGEST}, skip_faulty=skip_faulty
    )


def counted(trace: Trace, words: str) -> int:
    """How many tasks a note is about; 0 without one."""
    return sum(int(note.split()[0]) for note in trace.notes if words in note)


def test_a_task_arrives_at_its_submit_and_runs_from_schedule_to_finish(tmp_path: Path) -> None:
    trace = loaded(tmp_path, *WHOLE)
    assert trace.tasks == (Task("task-7-0", 700.0, 300.0, 8.0, 16 * 2.0**30),)
    assert trace.notes == (
        "1 tasks: requests are shares of the largest machine, which is assumed to have 64 cores "
        "and 256 GiB",
    )


def test_microseconds_are_kept(tmp_path: Path) -> None:
    lines = event(600.010111, SUBMIT), event(600.010111, SCHEDULE), event(745.252107, FINISH)
    (task,) = loaded(tmp_path, *lines).tasks
    assert (task.arrival_s, task.runtime_s) == (600.010111, 145.241996)


def test_tasks_of_one_job_are_distinguished_by_their_index(tmp_path: Path) -> None:
    second = (line.replace(",7,0,", ",7,1,") for line in WHOLE)
    trace = loaded(tmp_path, *WHOLE, *second)
    assert [task.name for task in trace.tasks] == ["task-7-0", "task-7-1"]


EVICTED = WHOLE[:2] + (event(800, EVICT), event(800, SUBMIT), event(805, SCHEDULE))


@pytest.mark.parametrize(
    ("lines", "runtime_s", "note"),
    [
        pytest.param((*EVICTED, event(900, FINISH)), 95.0, "began more than once", id="evicted"),
        pytest.param(
            (*WHOLE[:2], event(800, FAIL), event(810, SUBMIT), event(820, SCHEDULE),
             event(825, FINISH)), 5.0, "began more than once", id="failed-first"),
        pytest.param((*WHOLE[:2], event(750, KILL)), 40.0, "killed or failed;", id="killed"),
        pytest.param((*WHOLE[:2], event(750, FAIL)), 40.0, "killed or failed;", id="failed"),
        pytest.param(
            (*WHOLE[:2], event(720, UPDATE_RUNNING, cpu=0.5), WHOLE[2]), 300.0,
            "changed its requests while it ran", id="updated"),
        pytest.param(
            (*WHOLE, event(1020, SUBMIT), event(1030, SCHEDULE), event(1050, FINISH)), 20.0,
            "only its last run counts", id="finished-and-begun-again"),
    ],
)  # fmt: skip
def test_the_last_run_counts_and_the_note_tells(
    tmp_path: Path, lines: tuple[str, ...], runtime_s: float, note: str
) -> None:
    trace = loaded(tmp_path, *lines)
    (task,) = trace.tasks
    assert (task.arrival_s, task.runtime_s, task.cpu_cores) == (700.0, runtime_s, 8.0)
    assert counted(trace, note) == 1


def test_a_task_asks_for_what_it_was_scheduled_with(tmp_path: Path) -> None:
    lines = (WHOLE[0], event(705, UPDATE_PENDING, cpu=0.5, memory=0.25),
             event(710, SCHEDULE, cpu=0.5, memory=0.25),
             event(720, UPDATE_RUNNING, cpu="", memory=""), WHOLE[2])  # fmt: skip
    trace = loaded(tmp_path, *lines)
    assert (trace.tasks[0].cpu_cores, trace.tasks[0].memory_bytes) == (32.0, 64 * 2.0**30)
    assert counted(trace, "changed its requests") == 0


def test_memory_that_is_not_given_is_assumed_as_for_other_traces(tmp_path: Path) -> None:
    trace = loaded(tmp_path, WHOLE[0], event(710, SCHEDULE, memory=""), WHOLE[2])
    assert trace.tasks[0].memory_bytes == 8 * 4 * 2.0**30
    assert counted(trace, "4 GiB per core are assumed") == 1


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        pytest.param(WHOLE[:1], "waits for a machine where the file ends", id="waits"),
        pytest.param(WHOLE[:2], "runs where the file ends", id="runs"),
        pytest.param((*WHOLE[:2], event(AFTER, FINISH)), "runs where the file ends", id="after"),
        pytest.param((*WHOLE[:2], event(750, EVICT)), "evicted, and not submitted", id="evicted"),
        pytest.param((*WHOLE[:2], event(750, LOST)), "lost, so its end", id="lost"),
        pytest.param((WHOLE[0], event(750, KILL)), "ended while it waited", id="never-ran"),
        pytest.param(
            (event(BEFORE, SUBMIT), event(BEFORE, SCHEDULE), WHOLE[2]),
            "submitted before the trace", id="ran-before"),
        pytest.param((event(AFTER, SUBMIT),), "submitted after the trace", id="not-yet"),
        pytest.param(
            (event(BEFORE, SUBMIT), *WHOLE[1:]), "submitted before the trace", id="waited-before"),
        pytest.param(
            (event(BEFORE, SUBMIT, missing=2, cpu="", memory=""),
             event(BEFORE, SCHEDULE, missing=2, cpu="", memory="")),
            "submitted before the trace", id="put-in-before"),
    ],
)  # fmt: skip
def test_a_task_whose_runtime_is_not_given_is_left_out_and_counted(
    tmp_path: Path, lines: tuple[str, ...], reason: str
) -> None:
    trace = loaded(tmp_path, *lines, *OTHER)
    assert [task.name for task in trace.tasks] == ["task-8-0"]
    assert (counted(trace, reason), counted(trace, "left out"), trace.faults) == (1, 1, ())


def test_a_file_of_nothing_but_such_tasks_says_so(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"holds no tasks\n  1: runs where the file ends"):
        loaded(tmp_path, *WHOLE[:2])


@pytest.mark.parametrize(
    ("lines", "row", "reason"),
    [
        pytest.param((WHOLE[0], WHOLE[2], WHOLE[1]), 5,
                     "FINISH of task-7-0, which waits since row 4", id="finish-before-schedule"),
        pytest.param((WHOLE[1], WHOLE[0]), 4, "not submitted before; is a part of the trace",
                     id="schedule-before-submit"),
        pytest.param((WHOLE[0], *WHOLE), 5, "SUBMIT of task-7-0, which waits since row 4",
                     id="submit-twice"),
        pytest.param((*WHOLE[:2], *WHOLE[1:]), 6, "which runs since row 5", id="schedule-twice"),
        pytest.param((*WHOLE, WHOLE[2]), 7, "FINISH of task-7-0, which ended in row 6",
                     id="finish-twice"),
        pytest.param((*WHOLE, *WHOLE), 7, "at 700000000 us, before an earlier row's 1010000000",
                     id="all-twice"),
        pytest.param((WHOLE[0], event(710, EVICT)), 5, "EVICT of task-7-0, which waits",
                     id="evicted-while-it-waits"),
        pytest.param((WHOLE[0], event(710, UPDATE_RUNNING)), 5, "which waits", id="update-running"),
        pytest.param((*WHOLE[:2], event(720, UPDATE_PENDING)), 6, "which runs",
                     id="update-pending"),
        pytest.param((*WHOLE[:2], event(709.999999, FINISH)), 6,
                     "at 709999999 us, before an earlier row's 710000000", id="negative-runtime"),
        pytest.param((*WHOLE[:2], event(710, FINISH)), 6, "task-7-0 ran for 0 s", id="no-runtime"),
        pytest.param((event(-1, SUBMIT),), 4, "time is -1000000, less than 0", id="negative-time"),
        pytest.param(("soon" + WHOLE[0][9:],), 4, "time 'soon' is not a number", id="word"),
        pytest.param(("700.5" + WHOLE[0][9:],), 4, "700.5, not a whole number", id="seconds"),
        pytest.param((WHOLE[0][9:],), 4, "time is empty", id="no-time"),
        pytest.param((event(700, 9),), 4, "event type '9' is not known", id="type"),
        pytest.param((event(700, ""),), 4, "event type '' is not known", id="no-type"),
        pytest.param((event(700, SUBMIT, job="x"),), 4, "job ID 'x' and task index '0'", id="job"),
        pytest.param((event(700, SUBMIT, index=""),), 4, "task index '' are not both", id="index"),
        pytest.param((event(700, SUBMIT, cpu=-0.1),), 4, "CPU request is -0.1, less than 0",
                     id="negative-cpu"),
        pytest.param((event(700, SUBMIT, memory=-1),), 4, "memory request is -1, less than 0",
                     id="negative-memory"),
        pytest.param((event(700, SUBMIT, cpu=4),), 4, "CPU request is 4; it is a share",
                     id="cores-instead-of-a-share"),
        pytest.param((WHOLE[0], event(710, SCHEDULE, cpu="")), 5, "CPU request is empty",
                     id="no-cpu"),
        pytest.param((WHOLE[0], event(710, SCHEDULE, cpu=0)), 5, "CPU request is 0, not above 0",
                     id="cpu-of-nothing"),
        pytest.param((*WHOLE[:2], event(1010, FINISH, missing=1)), 6, "missing info is 1",
                     id="put-in"),
        pytest.param((WHOLE[0] + ",",), 4, "14 cells, but the header names 13", id="long"),
        pytest.param((WHOLE[0][:-2],), 4, "12 cells, but the header names 13", id="short"),
        pytest.param(("",), 4, "the row is empty", id="empty"),
    ],
)  # fmt: skip
def test_a_row_at_fault_is_reported_with_its_number_and_its_task_left_out(
    tmp_path: Path, lines: tuple[str, ...], row: int, reason: str
) -> None:
    lines = (*OTHER, *lines, event(1_000_000, SUBMIT, job=9))
    with pytest.raises(BadInput, match=r"1 fault; .*--skip-faulty") as told:
        loaded(tmp_path, *lines)
    assert f"row {row}: " in str(told.value) and reason in str(told.value)
    skipped = loaded(tmp_path, *lines, skip_faulty=True)
    assert [task.name for task in skipped.tasks] == ["task-8-0"]
    assert [fault.row for fault in skipped.faults] == [row]


def test_a_request_of_the_whole_machine_is_the_most(tmp_path: Path) -> None:
    (task,) = loaded(tmp_path, WHOLE[0], event(710, SCHEDULE, cpu=1, memory=1), WHOLE[2]).tasks
    assert (task.cpu_cores, task.memory_bytes) == (LARGEST.cpu_cores, LARGEST.memory_bytes)


@pytest.mark.parametrize(
    ("runtime_s", "is_plausible"),
    [
        pytest.param(0.3, False, id="five-minutes-in-milliseconds"),
        pytest.param(0.999999, False, id="just-too-short"),
        pytest.param(1.0, True, id="shortest"),
        pytest.param(604_800.0, True, id="longest"),
        pytest.param(604_800.000001, False, id="just-too-long"),
    ],
)
def test_times_that_cannot_be_microseconds_are_refused(
    tmp_path: Path, runtime_s: float, is_plausible: bool
) -> None:
    lines = (*WHOLE[:2], event(710 + runtime_s, FINISH))
    if is_plausible:
        assert loaded(tmp_path, *lines).tasks[0].runtime_s == pytest.approx(runtime_s)
    else:
        with pytest.raises(
            BadInput, match="microseconds, as the format has it, which is implausible"
        ):
            loaded(tmp_path, *lines)


def test_the_largest_machine_must_be_named(tmp_path: Path) -> None:
    with pytest.raises(
        BadInput, match=r"such as --largest-machine 64,256Gi.*largest_machine: \{cpu_co"
    ):
        load_trace(written(tmp_path, *WHOLE))


@pytest.mark.parametrize(
    ("text", "machine"),
    [
        pytest.param("64,256Gi", LARGEST, id="plain"),
        pytest.param(" 500m , 1Gi ", CellMachine(0.5, 2.0**30), id="spaces"),
    ],
)
def test_a_machine_is_its_cores_and_its_memory(text: str, machine: CellMachine) -> None:
    assert parse_machine(text) == machine


@pytest.mark.parametrize("text", ["", "64", "64,", ",256Gi", "0,256Gi", "64,-1Gi", "64 256Gi"])
def test_what_is_no_machine_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        parse_machine(text)


@pytest.mark.parametrize(
    "name", [pytest.param("part-00001-of-00500.csv", id="part"), pytest.param("ours.csv", id="any")]
)
def test_a_header_of_the_formats_own_names_is_no_event(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, ",".join(GOOGLE_COLUMNS), *WHOLE, name=name)
    assert len(load_trace(path, {"largest_machine": LARGEST}).tasks) == 1


def test_zipped_parts_put_together_are_one_trace(tmp_path: Path) -> None:
    path = tmp_path / "parts.csv.gz"
    path.write_bytes(b"".join(gzip.compress(f"{line}\n".encode()) for line in WHOLE))
    assert len(load_trace(path, {"largest_machine": LARGEST}).tasks) == 1


def test_a_broken_gzip_file_is_refused(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress("\n".join(WHOLE * 99).encode()))
    for content in (packed[:40], packed[:30] + b"\xff" * 20 + packed[50:]):
        path = tmp_path / "part-00001-of-00500.csv.gz"
        path.write_bytes(bytes(content))
        with pytest.raises(BadInput, match="cannot be read as CSV"):
            load_trace(path, {"largest_machine": LARGEST})


def test_another_table_of_the_trace_is_distinguished_from_this_one(tmp_path: Path) -> None:
    job_event = "0,,3418309,0,70s3v5qR=,3,IHgtoxEB=,HcVjwBJ="
    with pytest.raises(BadInput, match="not a part of task_events: its first line has 8 cells"):
        loaded(tmp_path, job_event)


def test_a_plain_trace_may_be_named_like_a_part(tmp_path: Path) -> None:
    lines = "name,arrival_s,runtime_s,cpu_cores,memory_mib,gpus", "a,0,1,1,1,0"
    assert load_trace(written(tmp_path, *lines)).tasks[0].name == "a"


def made_up_tasks(seed: int) -> list[list[str]]:
    """The events of some whole tasks, each arriving at another time, evicted up to twice."""
    drawn = random.Random(seed)
    tasks = []
    for number in range(drawn.randint(1, 12)):
        kinds = [SUBMIT, SCHEDULE] + [EVICT, SUBMIT, SCHEDULE] * drawn.randint(0, 2) + [FINISH]
        time_s, lines = 600.0 + number, []
        for kind in kinds:
            lines.append(event(time_s, kind, job=6_000_000_000 + number))
            time_s += drawn.randint(1, 5_000)
        tasks.append(lines)
    return tasks


def interleaved(tasks: list[list[str]], seed: int) -> list[str]:
    """All lines in any order that keeps each task's own."""
    turns = [number for number, lines in enumerate(tasks) for _ in lines]
    random.Random(seed).shuffle(turns)
    left = [iter(lines) for lines in tasks]
    return [next(left[turn]) for turn in turns]


@given(st.integers(0, 2**32), st.integers(0, 2**32))
def test_any_interleaving_of_whole_tasks_is_the_same_trace(
    tmp_path_factory: pytest.TempPathFactory, seed: int, order: int
) -> None:
    tasks = made_up_tasks(seed)
    folder = tmp_path_factory.mktemp("events")
    one_by_one = loaded(folder, *(line for lines in tasks for line in lines))
    assert loaded(folder, *interleaved(tasks, order)).tasks == one_by_one.tasks
    assert len(one_by_one.tasks) == len(tasks)


happenings = st.builds(
    event,
    st.sampled_from([BEFORE, AFTER, 600, 601, 700]) | st.integers(-1, 2_000),
    st.sampled_from([SUBMIT, SCHEDULE, SCHEDULE, FINISH, FINISH]) | st.integers(0, 9),
    job=st.integers(1, 3),
    missing=st.sampled_from(["", "", "", "", 0, 2]),
    cpu=st.sampled_from([0.5, 0.5, 0.25, "", -1, 2, "x"]),
)


@given(st.lists(happenings, min_size=1, max_size=30))
def test_every_task_is_taken_or_counted_and_none_is_impossible(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str]
) -> None:
    trace = loaded(tmp_path_factory.mktemp("events"), *lines, *OTHER, skip_faulty=True)
    named = {tuple(line.split(",")[2:4]) for line in (*lines, *OTHER)}
    assert len(trace.tasks) + counted(trace, "left out") == len(named)
    assert bool(trace.faults) == bool(counted(trace, "at fault in one of its rows"))
    for task in trace.tasks:
        assert task.runtime_s > 0 and task.arrival_s > 0 and 0 < task.cpu_cores <= 64


SCENARIO = """
name: google
start: 2011-05-01T23:00:00Z
length: 1h
cluster:
  nodes: [{name: n, count: 1, curve_watts: [100, 110, 120, 130, 140, 150, 160, 170, 180, 190, 200],
           cpu_cores: 64, memory: 256Gi, zone: A}]
grids: {A: {carbon: {constant: 400}, price: {constant: 80, unit: EUR/MWh}}}
workload:
  trace:
    file: part-00001-of-00500.csv
"""
LARGEST_LINE = "    largest_machine: {cpu_cores: 64, memory: 256Gi}\n"


def test_a_scenario_tells_the_largest_machine(tmp_path: Path) -> None:
    written(tmp_path, *WHOLE)
    path = tmp_path / "google.yaml"
    path.write_text(SCENARIO + LARGEST_LINE)
    trace = load_scenario(path).workload.trace
    assert trace is not None and trace.largest_machine is not None
    assert trace.largest_machine.memory == LARGEST.memory_bytes


def test_a_scenario_without_the_largest_machine_says_what_to_write(tmp_path: Path) -> None:
    written(tmp_path, *WHOLE)
    path = tmp_path / "google.yaml"
    path.write_text(SCENARIO)
    with pytest.raises(BadInput, match=r"1 fault:\n.*workload\.trace\.file.*largest_mach") as told:
        load_scenario(path)
    assert re.search(r"\(line \d+\)", str(told.value))
