"""A scenario names a GreenPolicy: the file that users apply, or a sentence on what is wrong."""

from pathlib import Path

import pytest

from greensched_core.errors import BadInput
from greensched_simulator.policy import policy_named
from greensched_simulator.runs.hold_terms import green_policy_of
from greensched_simulator.scenario.policy_file import read_policy_file
from greensched_simulator.testing.small_worlds import make_world
from greensched_simulator.world.scenario_loading import load_scenario

HEAD = "apiVersion: greensched.io/v1alpha1\nkind: GreenPolicy\nmetadata: {name: default}\n"
PROFILE = "apiVersion: greensched.io/v1alpha1\nkind: JobPowerProfile\nmetadata: {name: p}\n"
GALLERY = Path(__file__).resolve().parents[3] / "examples" / "scenarios"


def written(folder: Path, *documents: str) -> Path:
    """Write a file of several objects."""
    path = folder / "policy.yaml"
    path.write_text("---\n".join(documents))
    return path


def test_the_policy_is_the_one_that_users_apply_among_other_objects(tmp_path: Path) -> None:
    profile = f"{PROFILE}spec: {{work: [{{duration: 1h, watts: 90}}]}}\n"
    found = read_policy_file(written(tmp_path, profile, f"{HEAD}spec: {{mode: enforce}}\n"))
    policy = found.policy
    assert found.when_net is None
    assert found.notes == ("policy.yaml: of no effect on the simulation: JobPowerProfile p",)
    assert (policy.name, policy.mode) == ("default", "enforce")


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        pytest.param("{work: [{duration: 1h, watts: -90}]}",
                     "JobPowerProfile p: line 4: spec.work.0..watts: -90 must be from 0 to 1000000",
                     id="negative-watts"),
        pytest.param("{work: [{duration: 1h, watts: 90, watt: 5}]}",
                     "JobPowerProfile p: line 4: spec.work.0..watt: there is no such field",
                     id="unknown-field"),
        pytest.param("{work: [{duration: 1h, watts: 90}], checkpoints: {at: [20h]}}",
                     "JobPowerProfile p: spec.checkpoints.at.0.: 72000 s is after the end of the",
                     id="checkpoint-after-the-end"),
    ],
)  # fmt: skip
def test_a_profile_beside_the_policy_is_refused_as_a_cluster_would(
    spec: str, reason: str, tmp_path: Path
) -> None:
    path = written(tmp_path, f"{PROFILE}spec: {spec}\n", f"{HEAD}spec: {{mode: enforce}}\n")
    with pytest.raises(BadInput, match=reason):
        read_policy_file(path)


def test_other_objects_may_be_anything(tmp_path: Path) -> None:
    others = "kind: Job\nmetadata: x\n", "metadata: {name: y}\n"
    found = read_policy_file(written(tmp_path, f"{HEAD}spec: {{mode: enforce}}\n", *others))
    assert found.notes == (
        "policy.yaml: of no effect on the simulation: Job, a document without kind y",
    )


@pytest.mark.parametrize(
    ("documents", "reason"),
    [
        pytest.param([PROFILE], "holds 0 objects of kind GreenPolicy", id="none"),
        pytest.param([HEAD, HEAD], "holds 2 objects of kind GreenPolicy", id="two"),
        pytest.param([f"{HEAD}spec: {{}}\n"], "not given, so it is shadow", id="shadow"),
        pytest.param([f"{HEAD}spec: {{mode: off}}\n"], "spec.mode", id="a-bare-off"),
        pytest.param([f"{HEAD}spec: {{mode: enforce, maxHeldSharePercent: 101}}\n"],
                     "maxHeldSharePercent", id="out-of-range"),
        pytest.param([f"{HEAD}spec: {{mode: enforce, budget: {{period: Day}}}}\n"],
                     "it needs energyKwh or carbonKg", id="an-empty-budget"),
        pytest.param(["a: [\n"], "is not valid YAML", id="no-yaml"),
        pytest.param([f"{HEAD}spec: {{mode: enforce, onTimeTargetPercnt: 99}}\n"],
                     r"line 4: spec.onTimeTargetPercnt: there is no such field "
                     r"\(close: onTimeTargetPercent", id="a-misspelt-field"),
        pytest.param([f"{HEAD}spec: {{mode: enforce, weights: {{carbn: 5}}}}\n"],
                     r"spec.weights.carbn: there is no such field \(close: carbon\)",
                     id="a-misspelt-weight"),
        pytest.param([f"{HEAD}spec:\n  mode: enforce\n  quietHours:\n"
                      "  - {from: 17:00, to: 20:00, timezone: Europe/Berlin}\n"],
                     r"line 7: spec.quietHours\[0\].timezone: there is no such field "
                     r"\(close: timeZone\)", id="a-misspelt-zone"),
        pytest.param([f"{HEAD}sepc: {{mode: enforce}}\n"],
                     r"line 4: sepc: an object has no such part \(close: spec\)",
                     id="a-misspelt-part"),
        pytest.param([f"{HEAD.replace('default', 'X Y')}spec: {{mode: enforce}}\n"],
                     "line 3: metadata.name: 'X Y' is no name of an object", id="no-name"),
        pytest.param([f"{HEAD.replace('default', '5')}spec: {{mode: enforce}}\n"],
                     "metadata.name: 5 is not text", id="a-number-as-a-name"),
        pytest.param([f"{HEAD.replace('name: default', 'name: default, label: x')}"
                      "spec: {mode: enforce}\n"],
                     r"metadata.label: there is no such field \(close: labels\)",
                     id="a-misspelt-part-of-metadata"),
        pytest.param([f"{HEAD.replace('name: default', 'name: default, labels: {a: 5}')}"
                      "spec: {mode: enforce}\n"],
                     "metadata.labels: each value must be text, in quotes", id="a-numeric-label"),
        pytest.param([f"{HEAD}spec: {{mode: enforce, longestHold: {'1h' * 33}}}\n"],
                     "has more than 32 characters", id="a-long-duration"),
        pytest.param([f"{HEAD}spec: {{mode: enforce, longestHold: ' 1h'}}\n"],
                     "spec.longestHold: ' 1h' has blanks around it", id="blanks"),
        pytest.param([f"{HEAD}spec: {{mode: enforce, mode: shadow}}\n"], "mode is given twice",
                     id="a-field-given-twice"),
        pytest.param([f"{HEAD.replace('v1alpha1', 'v1beta9')}spec: {{mode: enforce}}\n"],
                     "line 1: apiVersion is greensched.io/v1beta9; write greensched.io/v1alpha1",
                     id="another-version"),
        pytest.param([f"{HEAD}spec: {{mode: enforce, carbonLimit: '80'}}\n"],
                     "nor a whole price per tonne without quotes", id="a-quoted-price"),
        pytest.param([f"{HEAD}spec: {{mode: enforce, carbonLimit: 80.5}}\n"],
                     "80.5 must be a whole price per tonne", id="half-a-unit-of-money"),
    ],
)  # fmt: skip
def test_what_the_simulator_cannot_run_is_refused_by_name(
    documents: list[str], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match="policy.yaml.*" + reason.replace(".", r"\.")):
        read_policy_file(written(tmp_path, *documents))


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    spec = "spec: {mode: enfrce, weights: {cost: -1, carbn: 5}, budget: {period: Day}, pause: 3}\n"
    with pytest.raises(BadInput) as told:
        read_policy_file(written(tmp_path, HEAD + spec))
    for part in ("spec.mode", "spec.weights.c", "spec.budget", "spec.pause"):
        assert f"\n  line 4: {part}" in str(told.value)
    assert str(told.value).count("\n") == 5, "a line for each"


def test_times_without_quotes_are_times_as_for_kubectl(tmp_path: Path) -> None:
    spec = "spec: {mode: enforce, quietHours: [{from: 17:00, to: 20:30}]}\n"
    (window,) = read_policy_file(written(tmp_path, HEAD + spec)).policy.quiet_hours.windows
    assert (window.from_minute, window.to_minute) == (17 * 60, 20 * 60 + 30)


def test_a_scenario_with_such_a_file_is_refused_with_its_line(tmp_path: Path) -> None:
    written(tmp_path, f"{HEAD}spec: {{mode: shadow}}\n")
    text = (GALLERY / "three-zones.yaml").read_text()
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(text.replace("../10-enforcing-policy.yaml", "policy.yaml"))
    with pytest.raises(BadInput, match="green_policy.*line 4: spec.mode is shadow"):
        load_scenario(scenario)


def test_without_a_policy_the_simulator_says_what_to_add() -> None:
    with pytest.raises(BadInput, match="names no GreenPolicy.*green_policy: policy.yaml"):
        green_policy_of(make_world([{}]), policy_named("green-policy"))


def test_a_pause_rule_that_the_operator_does_not_have_is_refused() -> None:
    with pytest.raises(BadInput, match="by pause-if-worth alone; name it instead of pause-freely"):
        green_policy_of(make_world([{}]), policy_named("green-policy+pause-freely"))
