"""Marks the tests of this folder as `engine`; and makes runs with schedules written by hand.

Such a run needs no engine: each policy starts the two jobs of a small world at given times.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from greensched_simulator.policy import policy_named
from greensched_simulator.results.comparison import Round
from greensched_simulator.results.run_folder import FinishedRun, RecordedRun, RunFolder
from greensched_simulator.runs.outcome import outcome_of
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import bill_of
from greensched_simulator.testing.small_worlds import in_one_piece
from greensched_simulator.world.scenario_loading import load_scenario
from greensched_simulator.world.world import World, build_world

_HERE = Path(__file__).parent

# 100 W when empty and 10 W more for each tenth of load; 8 cores, of requests half are used.
SMALL: dict[str, Any] = {
    "name": "small",
    "description": "Two jobs.",
    "start": "2023-06-01T00:00:00Z",
    "length": "2h",
    "cluster": {
        "nodes": [
            {
                "name": "node", "count": 2, "curve_watts": [100 + 10 * step for step in range(11)],
                "cpu_cores": 8, "memory": "16Gi", "zone": "<Z>", "pue": 1.0,
            }
        ]
    },
    "grids": {"<Z>": {"carbon": {"constant": 500}, "price": {"constant": 100, "unit": "EUR/MWh"}}},
    "workload": {"trace": {"file": "jobs.csv"}, "slack": "1h"},
}  # fmt: skip
JOBS = """name,arrival_s,runtime_s,cpu_cores,memory_mib,gpus
first,0,3600,4,1024,0
second,600,1800,8,1024,0
"""
Finished = Callable[..., FinishedRun]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests in this folder, so that `make test-unit` leaves them out."""
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.engine)


@pytest.fixture
def small_file(tmp_path: Path) -> Path:
    """Write the scenario's file; both jobs may wait an hour."""
    folder = tmp_path / "scenario"
    folder.mkdir()
    (folder / "jobs.csv").write_text(JOBS)
    (folder / "small.yaml").write_text(yaml.safe_dump(SMALL))
    return folder / "small.yaml"


@pytest.fixture
def small_world(small_file: Path) -> World:
    """Return a world of two nodes; the jobs arrive at 0 s and 600 s."""
    return build_world(load_scenario(small_file), 1)


@pytest.fixture
def finished(small_file: Path, tmp_path: Path) -> Finished:
    """Return a writer of runs in which each policy starts the two jobs at given times."""

    def write(
        starts_s: dict[str, tuple[float, float]], seeds: tuple[int, ...] = (1,), name: str = "run"
    ) -> FinishedRun:
        scenario = load_scenario(small_file)
        policies = tuple(policy_named(each) for each in starts_s)
        baseline = policies[0] if len(policies) > 1 else None
        run = RecordedRun(
            scenario, small_file, policies, baseline, seeds, ("greensched", "compare"),
            "2026-01-01T00:00:00Z",
        )  # fmt: skip
        with RunFolder(tmp_path / name, run) as folder:
            for seed in seeds:
                world = build_world(scenario, seed)
                schedules = [schedule_of(world, *each) for each in starts_s.values()]
                outcomes = [
                    outcome_of(world, each, bill_of(world, each, 10_800.0), 10_800.0)
                    for each in schedules
                ]
                folder.add(Round(world, policies, tuple(schedules), tuple(outcomes)))
            return folder.finish()

    return write


def schedule_of(world: World, *starts_s: float) -> Schedule:
    """Return a schedule that starts the jobs at these times, each on its own node; NaN rejects."""
    start_s = np.array(starts_s)
    node = np.where(np.isnan(start_s), -1, np.arange(start_s.size))
    return in_one_piece(start_s, start_s + world.jobs.runtime_s, node)
