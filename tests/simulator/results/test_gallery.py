"""Every scenario of the gallery runs, is billed in full, and is told in a folder."""

import os
from dataclasses import astuple, replace
from pathlib import Path

import numpy as np
import pytest

from greensched_core.errors import BadInput
from greensched_simulator.policy import BASELINE, policy_named
from greensched_simulator.results.comparison import compare
from greensched_simulator.results.run_folder import RecordedRun, RunFolder
from greensched_simulator.runs.node_hours import node_hours
from greensched_simulator.runs.simulation import bill_of
from greensched_simulator.scenario.file import read_document
from greensched_simulator.world.scenario_loading import Scenario, load_scenario

ROOT = Path(__file__).parents[3]
DATA = Path(os.environ.get("GREENSCHED_DATA") or ROOT.parent / "shared" / "data")
GALLERY = sorted((ROOT / "examples" / "scenarios").glob("*.yaml"))
POLICIES = tuple(policy_named(name) for name in (BASELINE, "carbon-time", "lowest-window"))


def loaded(path: Path) -> Scenario:
    """Return a scenario, or skip the test where its published data are not on this machine."""
    needs_data = "${GREENSCHED_DATA}" in path.read_text(encoding="utf-8")
    if needs_data and not DATA.is_dir():
        pytest.skip(f"{path.name} needs published data, and there is no folder {DATA}")
    return load_scenario(path, {"GREENSCHED_DATA": str(DATA)})


def test_the_gallery_is_not_empty() -> None:
    assert len(GALLERY) >= 4


@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_a_scenario_is_named_like_its_file_and_says_what_it_shows(path: Path) -> None:
    content = read_document(path).content
    assert content["name"] == path.stem
    assert len(content["description"]) > 20


@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_a_scenario_runs_and_its_rows_add_up_to_its_bill(path: Path, tmp_path: Path) -> None:
    scenario = loaded(path)
    seeds = (scenario.seed, scenario.seed + 1)
    run = RecordedRun(scenario, path, POLICIES, POLICIES[0], seeds, (), "2026-01-01T00:00:00Z")
    with RunFolder(tmp_path / "run", run) as folder:
        for done in compare(scenario, POLICIES, seeds, lambda policy, seed: None):
            folder.add(done)
        results = folder.finish().results
    for outcomes in results.outcomes.values():
        for outcome in outcomes:
            assert outcome.jobs_done == outcome.jobs > 0
            # More than 1 % of requests may be turned away: then the slowest of them takes for ever.
            told = replace(outcome, latency_p50_s=0.0, latency_p99_s=0.0)
            assert np.isfinite(astuple(told)).all()
            assert 0.0 <= outcome.latency_p50_s <= outcome.latency_p99_s
            assert outcome.energy_active_j > 0
    world, schedule, outcome = done.world, done.schedules[-1], done.outcomes[-1]
    bill = bill_of(world, schedule, outcome.billed_s)
    ours = np.zeros(bill.carbon_active_g.size)
    for part in node_hours(world, schedule, outcome.billed_s):
        np.add.at(ours, part.node, part.carbon_active_g)
    np.testing.assert_allclose(ours, bill.carbon_active_g, rtol=1e-9)


def test_without_the_published_data_a_scenario_says_what_to_set() -> None:
    (path,) = (each for each in GALLERY if each.stem == "pai-on-real-grids")
    with pytest.raises(BadInput, match="needs the variable GREENSCHED_DATA: set it to a folder"):
        load_scenario(path, {})
