"""Notes that tell what a run leaves out of what a cluster does."""

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
