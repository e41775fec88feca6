"""What a run leaves behind: rows reckoned by hand, the same bytes each time, refused if spoilt."""

import csv
import gzip
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from greensched_core.errors import BadInput
from greensched_policies.billing.accounting import PARTS
from greensched_policies.billing.timelines import Caps, Sleeps
from greensched_simulator.policy import policy_named
from greensched_simulator.results.recorded_rows import decision_rows, job_rows
from greensched_simulator.results.run_folder import FinishedRun, read_run
from greensched_simulator.runs.node_hours import node_hours
from greensched_simulator.runs.schedule import RunSegments, Schedule
from greensched_simulator.runs.simulation import bill_of
from greensched_simulator.testing.small_worlds import in_one_piece
from greensched_simulator.world.world import World

Finished = Callable[..., FinishedRun]
POLICY = policy_named("carbon-time")
NAN = float("nan")
TWO = {"spread": (0.0, 600.0), "carbon-time": (3600.0, 7200.0)}


def held(world: World, **columns: Any) -> Schedule:
    """Return a schedule in which the first job is delayed by half an hour, the second never ran."""
    ran = in_one_piece(np.array([1800.0, NAN]), np.array([5400.0, NAN]), np.array([1, -1]))
    return ran._replace(**{"planned_s": np.array([1800.0, 600.0])} | columns)


def rows(parts: Any) -> list[dict[str, Any]]:
    return [row for part in parts for row in part.to_pylist()]


def test_a_job_is_reported_with_its_wait_and_slowdown_and_nothing_that_never_was(
    small_world: World,
) -> None:
    first, second = rows(job_rows(small_world, POLICY, held(small_world)))
    assert (first["job"], first["node"], first["zone"]) == ("first", "node-1", "<Z>")
    assert (first["wait_s"], first["slowdown"], first["is_deadline_met"]) == (1800.0, 1.5, True)
    assert (second["start_s"], second["node"], second["wait_s"]) == (None, None, None)
    assert second["is_deadline_met"] is False


def test_decisions_come_in_the_order_of_time(small_world: World) -> None:
    told = rows(decision_rows(small_world, POLICY, held(small_world), 9000.0))
    assert [(row["at_s"], row["job"], row["decision"]) for row in told] == [
        (0.0, "first", "delay"),
        (1800.0, "first", "place"),
    ]
    assert (told[0]["until_s"], told[0]["node"]) == (1800.0, None)
    assert (told[1]["until_s"], told[1]["node"]) == (None, "node-1")


def test_a_suspended_job_has_a_decision_for_each_stop_and_each_going_on(small_world: World) -> None:
    """From half an hour on node 1, and, two thirds of an hour later, on node 0."""
    none = np.full(2, NAN)
    starts_s, ends_s = np.array([1800.0, 6000.0]), np.array([3600.0, 7800.0])
    paused = held(
        small_world,
        end_s=np.array([7800.0, NAN]),
        node=np.array([0, -1]),
        run_segments=RunSegments(
            np.zeros(2, int),
            np.array([1, 0]),
            starts_s,
            none,
            starts_s,
            ends_s,
            worker=np.zeros(2, int),
            data_zone=np.zeros(2, int),
            ready_s=starts_s,
        ),
    )
    told = rows(decision_rows(small_world, POLICY, paused, 9000.0))
    assert [(row["at_s"], row["job"], row["decision"], row["node"]) for row in told] == [
        (0.0, "first", "delay", None),
        (1800.0, "first", "place", "node-1"),
        (3600.0, "first", "suspend", "node-1"),
        (6000.0, "first", "resume", "node-0"),
    ]
    first = rows(job_rows(small_world, POLICY, paused))[0]
    assert (first["suspensions"], first["wait_s"]) == (1, 1800.0 + 2400.0)
    assert bill_of(small_world, paused, 9000.0).energy_active_j.tolist() == [25 * 1800.0] * 2
    (found,) = node_hours(small_world, paused, 9000.0)
    assert found.energy_active_j.tolist() == [0.0, 25 * 1200.0, 25 * 600.0, 25 * 1800.0, 0.0, 0.0]


def test_a_rejected_job_has_a_decision_and_an_empty_row(small_world: World) -> None:
    rejected = held(small_world, planned_s=np.array([1800.0, NAN]))
    told = rows(decision_rows(small_world, POLICY, rejected, 9000.0))
    assert [(row["at_s"], row["job"], row["decision"]) for row in told] == [
        (0.0, "first", "delay"),
        (600.0, "second", "reject"),
        (1800.0, "first", "place"),
    ]
    assert (told[1]["until_s"], told[1]["node"], told[1]["zone"]) == (None, None, None)
    second = rows(job_rows(small_world, POLICY, rejected))[1]
    never = {"planned_s", "start_s", "end_s", "node", "zone", "wait_s", "slowdown"}
    none = {"save_every_s", "data_zone"}
    assert {name for name, value in second.items() if value is None} == never | none


def test_a_run_of_rejected_jobs_is_written_read_back_and_noted(finished: Finished) -> None:
    run = finished({"spread": (0.0, 600.0), "reject-all": (NAN, NAN)})
    outcome = run.results.outcomes[policy_named("reject-all")][0]
    assert (outcome.jobs, outcome.jobs_done, outcome.jobs_never_ran) == (2, 0, 2)
    # 4 cores for an hour and 8 for half of one, each core 6.25 W, twice; 500 g/kWh.
    assert outcome.energy_charged_j == pytest.approx(2 * 50 * 3600)
    assert outcome.carbon_charged_g == pytest.approx(2 * 0.05 * 500)
    assert read_run(run.folder).results == run.results
    assert run.summary["notes"][-1] == (
        "reject-all: 2 of 2 jobs never ran; its totals are charged 2 times the most that these "
        "could take"
    )
    with gzip.open(run.folder / "jobs.csv.gz", "rt", encoding="utf-8") as file:
        row = list(csv.DictReader(file))[-1]
    assert row["policy"] == "reject-all+weighted-cost"
    assert {row[name] for name in ("node", "zone", "start_s", "end_s", "wait_s")} == {""}
    assert "never ran" not in (finished(TWO, name="all-ran").folder / "run.json").read_text()


def test_node_hours_are_those_reckoned_by_hand(small_world: World) -> None:
    (found,) = node_hours(small_world, held(small_world), 9000.0)
    assert found.node.tolist() == [0, 0, 0, 1, 1, 1]
    assert found.hour.tolist() == [0, 1, 2, 0, 1, 2]
    assert found.length_s.tolist() == [3600.0, 3600.0, 1800.0] * 2
    # 4 of 8 cores, half of them used: a quarter of the way from 100 W to 200 W.
    assert found.energy_active_j.tolist() == [0.0, 0.0, 0.0, 25 * 1800, 25 * 1800, 0.0]
    assert found.energy_idle_j.tolist() == [360e3, 360e3, 180e3] * 2
    assert found.cpu_core_s.tolist() == [0.0, 0.0, 0.0, 4 * 1800, 4 * 1800, 0.0]
    assert found.carbon_active_g[3] == pytest.approx(25 * 1800 / 3.6e6 * 500)
    assert found.cost_idle[0] == pytest.approx(0.1 * 0.1)


def test_a_node_that_sleeps_and_wakes_has_decisions_of_its_own(small_world: World) -> None:
    told = held(small_world, sleeps=Sleeps(
        np.array([1, 0]), *(np.array(pair) for pair in ((60.0, 90.0), (1500.0, np.inf),
                                                        (1800.0, np.inf), (5.0, 5.0), (99.0, 99.0)))
    ), caps=Caps(np.array([1]), np.array([1800.0]), np.array([0.7]), np.array([1.0])))  # fmt: skip
    found = rows(decision_rows(small_world, POLICY, told, 9000.0))
    assert [(row["at_s"], row["job"], row["decision"], row["node"]) for row in found] == [
        (0.0, "first", "delay", None),
        (60.0, None, "sleep", "node-1"),
        (90.0, None, "sleep", "node-0"),
        (1500.0, None, "wake", "node-1"),
        (1800.0, "first", "place", "node-1"),
        (1800.0, None, "cap", "node-1"),
    ]
    assert [row["cpu_frequency"] for row in found] == [None] * 5 + [0.7]
    assert [row["gpu_cap"] for row in found] == [None] * 5 + [1.0]
    sooner = rows(decision_rows(small_world, POLICY, told, 90.0))
    assert [row["decision"] for row in sooner if row["job"] is None] == ["sleep", "cap"]


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    start_s=st.lists(st.floats(0, 9000), min_size=2, max_size=2),
    node=st.lists(st.integers(0, 1), min_size=2, max_size=2),
    until_s=st.floats(1, 12_000),
    woken=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    capped_s=st.lists(st.floats(0, 9000), max_size=3),
)
def test_node_hours_add_up_to_the_bill(
    small_world: World,
    start_s: list[float],
    node: list[int],
    until_s: float,
    woken: tuple[float, float],
    capped_s: list[float],
) -> None:
    start = np.array(start_s)
    end = start + small_world.jobs.runtime_s
    awake = start.min()  # both nodes sleep, then wake, before the first job, one after the last
    sleeps = Sleeps(
        np.array([0, 1, 1]),
        np.array([0.0, 0.0, end.max() + 60.0]),
        np.array([woken[0] * awake, woken[1] * awake, np.inf]),
        np.array([awake, awake, np.inf]),
        np.array([5.0, 7.0, 7.0]),
        np.array([300.0, 200.0, 200.0]),
    )
    world = small_world._replace(
        nodes=small_world.nodes._replace(
            sleep_w=np.array([5.0, 7.0]), wake_w=np.array([300.0, 200.0])
        )
    )
    capped = np.sort(np.array(capped_s))
    caps = Caps(
        np.ones(capped.size, np.int64),
        capped,
        *np.array([[0.5, 0.8, 0.6], [1.0, 0.7, 0.9]])[:, : capped.size],
    )
    schedule = in_one_piece(start, end, np.array(node), sleeps, caps)
    bill = bill_of(world, schedule, until_s)
    parts = list(node_hours(world, schedule, until_s))
    for line in PARTS:
        ours = sum(float(getattr(part, line).sum()) for part in parts)
        assert ours == pytest.approx(float(getattr(bill, line).sum()), rel=1e-9, abs=1e-9)


def test_a_folder_holds_all_that_a_report_needs_and_is_read_back(finished: Finished) -> None:
    run = finished(TWO, seeds=(1, 2))
    assert {path.name for path in run.folder.iterdir()} == {
        "scenario.yaml", "run.json", "outcomes.csv",
        *(f"{table}.{ending}" for table in ("jobs", "decisions", "node-hours", "grid")
          for ending in ("csv.gz", "parquet")),
    }  # fmt: skip
    assert run.summary["seeds"] == [1, 2]
    assert run.summary["baseline"] == "run-now+spread"
    assert [each["file"] for each in run.summary["inputs"]] == ["jobs.csv"]
    assert "numba" in run.summary["versions"]
    told = (run.folder / "outcomes.csv").read_text(encoding="utf-8").splitlines()
    first = next(csv.DictReader(told))
    assert (first["carbon_marginal_g"], first["latency_p99_s"]) == ("", "")  # nobody tells such
    again = read_run(run.folder)
    assert again.results == run.results
    assert again.results.outcomes[POLICY][1].jobs_done == 2


def test_csv_and_parquet_hold_the_same_rows(finished: Finished) -> None:
    run = finished(TWO, seeds=(1, 2))
    for table, count in (("jobs", 8), ("decisions", 12), ("node-hours", 24), ("grid", 2)):
        parquet = pyarrow.parquet.read_table(run.rows(table)).to_pylist()
        with gzip.open(run.folder / f"{table}.csv.gz", "rt", encoding="utf-8") as file:
            plain = list(csv.DictReader(file))
        assert len(parquet) == len(plain) == count
        assert [str(row["seed"]) for row in parquet] == [row["seed"] for row in plain]


def test_the_same_run_writes_the_same_bytes(finished: Finished) -> None:
    runs = [finished(TWO, name=name) for name in ("once", "again")]
    for path in runs[0].folder.iterdir():
        assert path.read_bytes() == (runs[1].folder / path.name).read_bytes(), path.name


def test_a_folder_with_files_is_refused(finished: Finished, tmp_path: Path) -> None:
    finished(TWO)
    with pytest.raises(BadInput, match=r"is not empty: name another folder with --out"):
        finished(TWO)


@pytest.mark.parametrize(("name", "spoil"), [
    pytest.param("run.json", lambda text: text.replace('"format": 1', '"format": 0'), id="format"),
    pytest.param("run.json", lambda text: text.replace("spread", "magic"), id="policy"),
    pytest.param("run.json", lambda text: "[]", id="no-names"),
    pytest.param("outcomes.csv", lambda text: text.replace("jobs_done", "done"), id="columns"),
    pytest.param("outcomes.csv", lambda text: text.splitlines()[0], id="rows"),
])  # fmt: skip
def test_a_folder_of_another_version_is_refused(
    finished: Finished, name: str, spoil: Callable[[str], str]
) -> None:
    folder = finished(TWO).folder
    (folder / name).write_text(spoil((folder / name).read_text()))
    with pytest.raises(BadInput, match="written by another version of GreenSched, or changed"):
        read_run(folder)


def test_the_summary_is_json_without_nan(finished: Finished) -> None:
    def refuse(word: str) -> None:
        raise AssertionError(word)

    text = (finished(TWO).folder / "run.json").read_text()
    json.loads(text, parse_constant=refuse)


def test_the_green_policy_of_a_run_is_an_input_like_others(
    finished: Finished, small_file: Path
) -> None:
    policy = small_file.with_name("policy.yaml")
    policy.write_text(
        "apiVersion: greensched.io/v1alpha1\nkind: GreenPolicy\nmetadata: {name: default}\n"
        "spec: {mode: enforce}\n"
    )
    small_file.write_text(f"{small_file.read_text()}\ngreen_policy: policy.yaml\n")
    inputs = finished(TWO).summary["inputs"]
    assert [each["file"] for each in inputs] == ["jobs.csv", "policy.yaml"]
    assert inputs[1]["sha256"] == hashlib.sha256(policy.read_bytes()).hexdigest()
