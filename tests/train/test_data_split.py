"""No training sees what a policy is tested on."""

import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from greensched_core.durations import parse_duration
from greensched_core.signals.timestamps import parse_timestamp
from greensched_policies.encoding.reward import ROUNDING_S
from greensched_simulator.policy import policy_named
from greensched_simulator.runs.simulation import simulate
from greensched_simulator.world.scenario_loading import load_scenario
from greensched_simulator.world.world import build_world
from greensched_train.data_split import (
    DATA_PARTS,
    MARGIN,
    TEST,
    TEST_SCENARIOS,
    TRAINING,
    VALIDATION,
    DataPart,
    euro_rates,
    zone_grid,
)
from greensched_train.drawn_scenarios import drawn_document, drawn_scenario

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("GREENSCHED_DATA") or ROOT.parent / "shared" / "data")
FILES = sorted(TEST_SCENARIOS.glob("*.yaml"))
needs_data = pytest.mark.skipif(
    not DATA.is_dir(), reason=f"no data sets at {DATA}; set GREENSCHED_DATA"
)
parts = pytest.mark.parametrize("part", DATA_PARTS, ids=lambda part: str(part.name))
seeds = st.integers(0, 2**31)


def content_of(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return content


def assert_within(part: DataPart, scenario: Mapping[str, Any]) -> None:
    """Fail unless all data of a scenario are of one part."""
    begin_s = parse_timestamp(scenario["start"])
    end_s = begin_s + parse_duration(scenario["length"])
    assert part.begin.timestamp() <= begin_s
    assert end_s + MARGIN.total_seconds() <= part.end.timestamp()
    zones = tuple(scenario["grids"])
    assert set(zones) <= set(part.zones)
    assert {group["zone"] for group in scenario["cluster"]["nodes"]} == set(zones)
    for zone, grid in scenario["grids"].items():
        assert grid == zone_grid(zone, grid["forecast_error"])
    assert scenario.get("exchange_rates", {}) == euro_rates(zones)
    trace = scenario["workload"].get("trace")
    assert trace is None or Path(trace["file"]).name in part.traces


def test_parts_follow_each_other() -> None:
    assert TRAINING.end <= VALIDATION.begin
    assert VALIDATION.end <= TEST.begin
    assert timedelta() < MARGIN


def test_the_test_part_has_zones_and_traces_that_are_in_no_other_part() -> None:
    others = {*TRAINING.zones, *VALIDATION.zones}
    assert len(set(TEST.zones) - others) >= 3
    assert set(TEST.traces).isdisjoint({*TRAINING.traces, *VALIDATION.traces})
    assert len(set(VALIDATION.zones) - set(TRAINING.zones)) >= 1


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.stem))
def test_a_test_scenario_is_of_the_test_part_alone(path: Path) -> None:
    scenario = content_of(path)
    assert scenario["name"] == path.stem
    assert_within(TEST, scenario)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.stem))
def test_a_test_scenario_has_errors_load_and_weights_as_figures_name_them(path: Path) -> None:
    scenario = content_of(path)
    assert 0.6 <= scenario["workload"]["load"] <= 1.1
    assert scenario["workload"]["estimate_error"] == 0.2
    assert {grid["forecast_error"] for grid in scenario["grids"].values()} == {0.1}
    assert scenario["weights"] == {"cost": 1, "carbon": 1, "performance": 0.1}


def test_most_test_scenarios_have_a_zone_that_no_training_saw() -> None:
    seen = {*TRAINING.zones, *VALIDATION.zones}
    unseen = [path for path in FILES if set(content_of(path)["grids"]) - seen]
    assert len(FILES) >= 8
    assert len(unseen) > len(FILES) / 2


@parts
@settings(max_examples=200)
@given(seed=seeds)
def test_a_drawn_scenario_is_of_its_part_alone(part: DataPart, seed: int) -> None:
    drawn = drawn_document(part, seed)
    assert_within(part, drawn)
    assert drawn == drawn_document(part, seed)


def test_parts_draw_other_scenarios_from_the_same_seed() -> None:
    drawn = [drawn_document(part, 1) for part in DATA_PARTS]
    assert drawn[0]["cluster"] != drawn[1]["cluster"] != drawn[2]["cluster"]


def test_drawn_scenarios_are_of_all_kinds() -> None:
    drawn = [drawn_document(TRAINING, seed) for seed in range(200)]
    loads = [each["workload"]["load"] for each in drawn]
    nodes = [sum(group["count"] for group in each["cluster"]["nodes"]) for each in drawn]
    assert min(loads) < 0.4
    assert max(loads) > 1.0
    assert min(nodes) < 12
    assert max(nodes) > 200
    assert {len(each["grids"]) for each in drawn} == {1, 2, 3}
    for kind in ("gpus", "trace"):
        assert 10 < sum(kind in str(each) for each in drawn) < 190, kind


@needs_data
@parts
def test_drawn_scenarios_make_worlds(part: DataPart) -> None:
    for seed in range(8):
        world = build_world(drawn_scenario(part, seed, {"GREENSCHED_DATA": str(DATA)}))
        assert 50 < world.jobs.arrival_s.size < 40_000


@needs_data
@pytest.mark.engine
@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.stem))
def test_deadlines_can_be_kept_where_a_test_scenario_has_room(path: Path) -> None:
    scenario = load_scenario(path, {"GREENSCHED_DATA": str(DATA)})
    world = build_world(scenario)
    schedule, deadline_s = simulate(world, policy_named("run-now")), world.jobs.deadline_s
    has_deadline = np.isfinite(deadline_s)
    missed = np.mean(schedule.end_s[has_deadline] > deadline_s[has_deadline] + ROUNDING_S)
    load = scenario.workload.load
    assert load is not None
    assert missed <= 0.005 or load > 0.8
