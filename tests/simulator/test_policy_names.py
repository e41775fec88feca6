import pytest

from greensched_core.errors import BadInput
from greensched_policies.rules.catalogue import (
    BAD_WHEN_RULES,
    CAP_RULES,
    ORDER_RULES,
    PAUSE_RULES,
    SCALE_RULES,
    SLEEP_RULES,
    WHEN_RULES,
)
from greensched_simulator.policy import (
    BAD_PLACINGS,
    BASELINE,
    GREEN_POLICY,
    PLACINGS,
    PRESETS,
    QUEUES,
    Able,
    Policy,
    names_by_kind,
    policies_named,
    policy_named,
)


@pytest.mark.parametrize(("text", "policy"), [
    pytest.param("carbon-time+least-cost", Policy("carbon-time", "least-cost"), id="both"),
    pytest.param("carbon-time", Policy("carbon-time", "weighted-cost"), id="when-alone"),
    pytest.param("spread", Policy("run-now", "spread"), id="where-alone"),
    pytest.param(" run-now + spread ", Policy("run-now", "spread"), id="spaces"),
    pytest.param("easy", Policy("run-now", "weighted-cost", "easy"), id="queue-alone"),
    pytest.param("sjf+spread", Policy("run-now", "spread", "sjf"), id="any-order"),
    pytest.param("round-robin", Policy("run-now", "round-robin"), id="round-robin"),
    pytest.param(" min-min ", Policy("run-now", "fastest", "sjf"), id="min-min"),
    pytest.param("max-min", Policy("run-now", "fastest", "ljf"), id="max-min"),
    pytest.param("ecsched", Policy("run-now", "tetris", "concurrent"), id="ecsched"),
    pytest.param("tetris-srtf", Policy("run-now", "tetris", "sjf"), id="tetris-srtf"),
    pytest.param("onnx:a/b", Policy("onnx", "onnx", cap="onnx", bundle="a/b"), id="a-bundle"),
    pytest.param(
        "full-speed+onnx:a+run-now", Policy("run-now", "onnx", bundle="a"), id="a-head-of-a-bundle"
    ),
])  # fmt: skip
def test_a_policy_is_named_by_its_rules_or_some_of_them(text: str, policy: Policy) -> None:
    assert policy_named(text) == policy


@pytest.mark.parametrize("when", WHEN_RULES)
@pytest.mark.parametrize("where", PLACINGS)
@pytest.mark.parametrize("queue", ["oldest-fit", "easy"])
def test_a_policy_is_found_by_its_name_and_by_its_label(when: str, where: str, queue: str) -> None:
    policy = Policy(when, where, queue)
    assert policy_named(policy.name) == policy_named(policy.label) == policy


@pytest.mark.parametrize("rules", ["", "+run-now", "+spread+sjf", "+full-speed", "+cap-frugal"])
def test_a_policy_with_a_bundle_is_found_by_its_name_and_by_its_label(rules: str) -> None:
    policy = policy_named(f"onnx:models/prior{rules}")
    assert policy.bundle == "models/prior"
    assert policy_named(policy.name) == policy_named(policy.label) == policy


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("onnx:", "names no bundle: give its folder", id="no-folder"),
        pytest.param("onnx:a+onnx:b", "names two bundles, a and b: give one", id="two"),
        pytest.param("onnx", "there is no policy 'onnx'", id="no-colon"),
    ],
)
def test_a_bundle_is_one_folder(text: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        policy_named(text)


@pytest.mark.parametrize(
    "text",
    ["", "magic", "run-now+", "+spread", "a+b+c"],
)
def test_an_unknown_name_is_refused_with_the_command_that_lists_all(text: str) -> None:
    with pytest.raises(BadInput, match="there is no policy .*`greensched policy list`") as fault:
        policy_named(text)
    assert repr(text) in str(fault.value)
    assert "\n" not in str(fault.value)


def test_a_preset_beside_a_rule_is_refused_as_such() -> None:
    with pytest.raises(
        BadInput, match="'min-min' is a preset and cannot be combined, as in 'min-m"
    ):
        policy_named("min-min+easy")


def test_every_order_has_a_queue() -> None:
    assert {queue.order for queue in QUEUES.values()} == {*ORDER_RULES}


def test_every_name_is_listed_once() -> None:
    names = [name for kind in names_by_kind().values() for name in kind]
    assert sorted(names) == sorted(
        [*WHEN_RULES, *PLACINGS, *QUEUES, *SLEEP_RULES, *CAP_RULES, *PAUSE_RULES, *PRESETS,
         *BAD_WHEN_RULES, *BAD_PLACINGS, GREEN_POLICY]
    )  # fmt: skip


def test_all_stands_for_every_rule_once_the_baseline_first() -> None:
    policies = policies_named("all")
    assert policies[0] == policy_named(BASELINE)
    assert {policy.when for policy in policies} == set(WHEN_RULES)
    assert {policy.where for policy in policies} == set(PLACINGS)
    assert {policy.queue for policy in policies} == set(QUEUES)
    assert {policy.sleep for policy in policies} == set(SLEEP_RULES)
    assert {policy.cap for policy in policies} == set(CAP_RULES)
    assert {policy.pause for policy in policies} == set(PAUSE_RULES)
    kinds = (WHEN_RULES, PLACINGS, QUEUES, SLEEP_RULES, CAP_RULES, PAUSE_RULES)
    assert set(PRESETS.values()) <= set(policies)
    # The usual ones of all kinds, once.
    rules = sum(len([*kind]) for kind in kinds) - (len(kinds) - 1)
    assert len(policies) == len(set(policies)) == rules + len(PRESETS)


def test_all_leaves_out_how_nodes_sleep_where_none_can() -> None:
    told = policies_named("sleep-at-once, all", Able(nodes_sleep=False))
    assert {policy.sleep for policy in told[1:]} == {"stay-awake"}
    assert told[0].sleep == "sleep-at-once", "it was asked for by name"
    assert len(told) == len(policies_named("all")) - len(SLEEP_RULES) + 1


def test_all_leaves_out_how_jobs_pause_where_none_can() -> None:
    told = policies_named("all, planned-window+pause-freely", Able(jobs_suspend=False))
    assert [policy.pause for policy in told[-1:]] == ["pause-freely"], "it was asked for by name"
    assert {policy.pause for policy in told[:-1]} == {"run-through"}


def test_all_has_the_green_policy_where_the_scenario_names_one() -> None:
    others = policies_named("all")
    told = policies_named("all", Able(has_green_policy=True))
    added = [policy.label for policy in told if policy not in others]
    assert added == ["green-policy", "green-policy+pause-if-worth"]
    told = policies_named("all", Able(jobs_suspend=False, has_green_policy=True))
    assert [policy.label for policy in told if policy.when == "green-policy"] == ["green-policy"]


def test_all_leaves_out_how_jobs_scale_where_none_can() -> None:
    told = policies_named("all", Able(jobs_scale=False))
    assert {policy.pause for policy in told} == set(PAUSE_RULES) - SCALE_RULES
    assert SCALE_RULES < set(PAUSE_RULES)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_called_by_its_name_however_it_was_given(name: str) -> None:
    given = policy_named(policy_named(name).name)
    assert given == PRESETS[name]
    assert given.label == name


@pytest.mark.parametrize(
    ("given", "label"),
    [
        *((each, "run-now+weighted-cost") for each in ("run-now", "weighted-cost")),
        *((each, "run-now+spread") for each in ("spread", "run-now+spread")),
        ("run-now+bin-pack", "bin-pack"),
        ("carbon-time+spread", "carbon-time+spread"),
    ],
)
def test_the_baseline_and_the_usual_rules_are_called_by_both(given: str, label: str) -> None:
    assert policy_named(given).label == label


def test_no_name_means_two_rules() -> None:
    names = [*WHEN_RULES, *PLACINGS, *QUEUES, *PRESETS, *BAD_WHEN_RULES, *BAD_PLACINGS]
    assert len(names) == len(set(names))


def test_a_list_keeps_its_order_and_names_each_policy_once() -> None:
    named = [policy.label for policy in policies_named("spread,carbon-time,run-now+spread")]
    assert named == ["run-now+spread", "carbon-time"]


@pytest.mark.parametrize("text", ["spread+topsis", "easy+fcfs"])
def test_two_rules_of_one_kind_are_refused_as_such(text: str) -> None:
    with pytest.raises(BadInput, match="names two (where|queue) rules"):
        policy_named(text)


def test_all_that_is_wrong_in_a_list_is_reported_at_once_and_each_once() -> None:
    with pytest.raises(BadInput) as fault:
        policies_named("magic,spread,lest-carbon+wizard,spread+topsis,magic")
    *told, remedy = str(fault.value).split("; ")
    assert "; ".join(part.partition(" (close")[0] for part in told) == (
        "'spread+topsis' names two where rules, spread and topsis: give one; "
        "there is no policy 'magic'; "
        "there is no policy 'lest-carbon' in 'lest-carbon+wizard'; "
        "there is no policy 'wizard' in 'lest-carbon+wizard'"
    )
    assert remedy == "`greensched policy list` prints all names"


def test_no_two_rules_have_one_name_whatever_their_kinds() -> None:
    kinds = (WHEN_RULES, BAD_WHEN_RULES, PLACINGS, BAD_PLACINGS, QUEUES, SLEEP_RULES, CAP_RULES,
             PAUSE_RULES)  # fmt: skip
    names = [name for kind in kinds for name in kind]
    assert sorted(names) == sorted({*names})
    assert not {*names} & PRESETS.keys()
