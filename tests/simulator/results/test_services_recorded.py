"""The results of runs with services; schedules are written by hand."""

import csv
import gzip
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import yaml

from greensched_simulator.policy import policy_named
from greensched_simulator.reports.report import write_run_report
from greensched_simulator.results.cells import Cell, ResultRow
from greensched_simulator.results.comparison import Round
from greensched_simulator.results.recorded_columns import (
    ALWAYS,
    COUNT,
    IN_WORDS,
    OF_SERVICES,
    OUTCOMES,
    WHICH,
    WHOLE,
    RecordedTable,
)
from greensched_simulator.results.run_folder import FinishedRun, RecordedRun, RunFolder, read_run
from greensched_simulator.results.tables import change_rows, done_rows, losses, outcome_rows
from greensched_simulator.runs.outcome import Outcome, outcome_of
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import bill_of
from greensched_simulator.testing.small_worlds import in_one_piece
from greensched_simulator.world.scenario_loading import load_scenario
from greensched_simulator.world.services import is_replica
from greensched_simulator.world.world import World, build_world

HOUR = 3600.0
PAGE = Path(__file__).parents[3] / "docs" / "run-folder.md"
SERVICE = """
- name: web
  requests: {trace: {file: log.csv, repeat: 720}}
  service_time: {mean: 500ms}
  objective: {share: 0.9, within: 2s}
  replica: {cpu_cores: 1, memory: 1Gi}
  autoscaler: {every: 1h, least: 1, most: 1}
"""
SPREAD, LATE = policy_named("spread"), policy_named("carbon-time")


@pytest.fixture
def run(small_file: Path, tmp_path: Path) -> FinishedRun:
    """A service whose one replica comes at once under the first policy, an hour late under the
    second."""
    (small_file.parent / "log.csv").write_text("arrival_s\n0\n2\n4\n6\n8\n")  # one each 2 s
    content = yaml.safe_load(small_file.read_text()) | {"services": yaml.safe_load(SERVICE)}
    small_file.write_text(yaml.safe_dump(content))
    scenario = load_scenario(small_file)
    asked = RecordedRun(
        scenario, small_file, (SPREAD, LATE), SPREAD, (1,), (), "2026-01-01T00:00:00Z"
    )
    world = build_world(scenario, 1)
    schedules = (schedule_of(world, 0.0), schedule_of(world, HOUR))
    outcomes = tuple(
        outcome_of(world, each, bill_of(world, each, 3 * HOUR), 3 * HOUR) for each in schedules
    )
    with RunFolder(tmp_path / "run", asked) as folder:
        folder.add(Round(world, (SPREAD, LATE), schedules, outcomes))
        return folder.finish()


def schedule_of(world: World, delay_s: float) -> Schedule:
    """Return a schedule that starts all on arrival, but replicas so much later."""
    jobs, is_web = world.jobs, is_replica(world.jobs)
    start_s = jobs.arrival_s + np.where(is_web, delay_s, 0.0)
    end_s = np.where(is_web, jobs.leaves_at_s, start_s + jobs.runtime_s)
    return in_one_piece(start_s, end_s, np.where(is_web, 1, 0))


def rows_of(run: FinishedRun, table: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pyarrow.parquet.read_table(run.rows(table)).to_pylist()
    return rows


def texts(row: ResultRow) -> list[str]:
    return [cell.text if isinstance(cell, Cell) else cell for cell in row]


def test_jobs_replicas_and_slots_have_tables_of_their_own(run: FinishedRun) -> None:
    assert [row["job"] for row in rows_of(run, "jobs")] == ["first", "second"] * 2
    assert rows_of(run, "replicas")[1] == {
        "seed": 1, "policy": LATE.name, "replica": "web-0-0", "service": "web", "wanted_s": 0.0,
        "leaves_s": 2 * HOUR, "start_s": HOUR, "end_s": 2 * HOUR, "node": "node-1", "zone": "<Z>",
    }  # fmt: skip
    slots = rows_of(run, "services")
    assert [(row["policy"], row["from_s"]) for row in slots] == [
        (SPREAD.name, 0.0), (SPREAD.name, HOUR), (LATE.name, 0.0), (LATE.name, HOUR),
    ]  # fmt: skip
    assert [row["turned_away"] for row in slots] == [0.0, 0.0, 1800.0, 0.0]
    assert [row["ready"] for row in slots] == [1.0, 1.0, 0.0, 1.0]
    assert [row["cpu_use"] for row in slots] == [0.25, 0.25, None, 0.25]
    # M/M/1 of 2 and 0.5 a second: exp(-1.5 · 2) are late.
    assert slots[0]["in_time"] == pytest.approx(1800 * (1 - np.exp(-3.0)), rel=1e-5)


def plain_rows(run: FinishedRun, table: RecordedTable) -> list[list[str]]:
    """Return a table as its CSV file has it, the names first."""
    path = run.folder / f"{table.name}.csv"
    packed = run.folder / f"{table.name}.csv.gz"
    text = gzip.decompress(packed.read_bytes()).decode() if packed.exists() else path.read_text()
    return list(csv.reader(text.splitlines()))


def columns_of_page() -> dict[str, list[tuple[str, str]]]:
    """Return name and type of each column that the page tells, by file."""
    found: dict[str, list[tuple[str, str]]] = {}
    for part in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        columns = re.findall(r"^\| `(\w+)` \| ([\w ]+) \|", part, re.MULTILINE)
        found |= dict.fromkeys(re.findall(r"`([^`]+)`", part.partition("\n")[0]), columns)
    return found


def test_the_page_of_columns_tells_what_is_written(run: FinishedRun) -> None:
    told = columns_of_page()
    others = {"run.json", "scenario.yaml"}
    assert set(told) == {path.name for path in run.folder.iterdir()} - others
    for name, columns in told.items():
        if name.endswith(".parquet"):
            written = pyarrow.parquet.read_schema(run.folder / name)
            assert columns == [(each.name, IN_WORDS[each.type]) for each in written], name
    for table in (OUTCOMES, *ALWAYS, *OF_SERVICES):
        names = next(told[name] for name in told if name.startswith(f"{table.name}.csv"))
        assert plain_rows(run, table)[0] == [name for name, _ in names], table.name


def test_what_was_done_comes_first_and_every_figure_has_a_column() -> None:
    figures = OUTCOMES.schema.names[2:]
    assert figures[:6] == [
        "jobs", "jobs_done", "work_core_h", "work_gpu_h", "work_memory_gib_h", "deadlines",
    ]  # fmt: skip
    assert sorted(figures) == sorted(each.name for each in fields(Outcome))


def test_counts_and_what_numbers_things_are_whole_and_nothing_else_is(run: FinishedRun) -> None:
    for table in (OUTCOMES, *ALWAYS, *OF_SERVICES):
        _, *lines = plain_rows(run, table)
        for place, column in enumerate(table.columns):
            assert (column.unit in (COUNT, WHICH)) == (column.kind == WHOLE), column.name
            if column.kind == WHOLE:
                assert all(re.fullmatch(r"\d*", line[place]) for line in lines), column.name
        assert lines, table.name


@pytest.mark.parametrize(("table", "column"), [
    ("jobs", "workers"), ("jobs", "scaling"), ("jobs", "suspensions"), ("services", "wanted"),
    ("node-hours", "hour"),
])  # fmt: skip
def test_a_count_is_an_integer_in_parquet(run: FinishedRun, table: str, column: str) -> None:
    assert pyarrow.parquet.read_schema(run.rows(table)).field(column).type == pa.int64()


def test_the_folder_is_read_back_and_names_the_log(run: FinishedRun) -> None:
    assert [each["file"] for each in run.summary["inputs"]] == ["jobs.csv", "log.csv"]
    assert run.summary["jobs"] == 2
    assert run.summary["notes"][-1] == (
        "carbon-time: web answered 47.51 % of its requests in time, its objective is 90 %"
    )
    assert read_run(run.folder).results == run.results
    assert "requests" in write_run_report(run).read_text(encoding="utf-8")


def test_a_policy_tells_requests_beside_deadlines(run: FinishedRun) -> None:
    told = dict(map(texts, outcome_rows(run.results.outcomes[SPREAD][0], "EUR")))
    assert told["jobs done"] == "2 of 2"
    assert told["requests in time"] == "95.02 % of 3,600, 179 late"
    assert told["  of these turned away"] == "0"
    late = [texts(row) for row in outcome_rows(run.results.outcomes[LATE][0], "EUR")]
    assert ["  of these turned away", "1,800"] in late
    assert ["  99th percentile", "∞"] in late


def test_a_comparison_shows_late_requests_beside_what_was_saved(run: FinishedRun) -> None:
    head, spread, late = map(texts, change_rows(run.results))
    assert head[:3] == ["policy", "deadlines\nmissed", "requests\nlate"]
    assert (spread[2], late[2]) == ("179", "1,890")
    head, spread, late = map(texts, done_rows(run.results))
    assert head[-2:] == ["requests\nin time, %", "99 %,\ns"]
    assert (spread[-2], late[-2:]) == ("95.02", ["47.51", "∞"])
    assert any(each.startswith("more requests late than") for each in losses(run.results))
