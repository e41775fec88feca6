"""Notes that tell what a run leaves out of what a cluster does."""

import json
from pathlib import Path

import pytest

from greensched_simulator.policy import policies_named
from greensched_simulator.results.comparison import compare
from greensched_simulator.results.notes import notes_of_first
from greensched_simulator.scenario.file import read_document
from greensched_simulator.world.scenario_loading import parse_scenario

GALLERY = Path(__file__).resolve().parents[3] / "examples" / "scenarios"


@pytest.mark.parametrize(
    ("scenario", "policy", "is_told"),
    [
        ("checkpointed-training", "green-policy", True),
        ("checkpointed-training", "green-policy+pause-if-worth", False),
        ("checkpointed-training", "run-now+spread", False),
        ("one-solar-grid", "green-policy", False),  # no job can be suspended
    ],
)
def test_a_green_policy_that_leaves_out_pauses_says_so(
    scenario: str, policy: str, is_told: bool
) -> None:
    content = read_document(GALLERY / f"{scenario}.yaml").content
    content["green_policy"] = "../10-enforcing-policy.yaml"
    loaded = parse_scenario(content, GALLERY)
    (done,) = compare(loaded, policies_named(policy), (1,), lambda policy, seed: None)
    told = [note for note in notes_of_first(done) if "pauses no job" in note]
    assert told == (
        ["green-policy pauses no job; on a cluster, Jobs that can be suspended may be paused: "
         "green-policy+pause-if-worth"] if is_told else []
    )  # fmt: skip


@pytest.mark.parametrize(
    ("quiet_hours", "is_told"),
    [
        pytest.param([], False, id="never-quiet"),
        pytest.param([{"from": "06:00", "to": "20:00"}], True, id="quiet-by-day"),
    ],
)
def test_jobs_that_were_released_in_quiet_hours_are_counted(
    quiet_hours: list[dict[str, str]], is_told: bool, tmp_path: Path
) -> None:
    spec = {"mode": "enforce", "quietHours": quiet_hours, "maxHeldSharePercent": 5}
    manifest = {
        "apiVersion": "greensched.io/v1alpha1", "kind": "GreenPolicy",
        "metadata": {"name": "default"}, "spec": spec,
    }  # fmt: skip
    (tmp_path / "policy.yaml").write_text(json.dumps(manifest), encoding="utf-8")
    content = read_document(GALLERY / "one-solar-grid.yaml").content
    content["green_policy"] = str(tmp_path / "policy.yaml")
    loaded = parse_scenario(content, GALLERY)
    policies = policies_named("green-policy,run-now+spread")
    (done,) = compare(loaded, policies, (1,), lambda policy, seed: None)
    schedule, world = done.schedules[0], done.world
    hours = (world.start_s + schedule.planned_s) / 3600.0 % 24.0
    count = int(((6.0 <= hours) & (hours < 20.0)).sum())
    told = [note for note in notes_of_first(done) if "in quiet hours" in note]
    assert len(told) == is_told
    assert count > 0
    if is_told:
        assert told[0].startswith(f"green-policy: {count:,} of {schedule.planned_s.size:,} jobs")
