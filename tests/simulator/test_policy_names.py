import pytest

from greensched_core.errors import BadInput
from greensched_policies.catalogue import WHEN_RULES, WHERE_RULES
from greensched_simulator.policy import BASELINE, Policy, policies_named, policy_named


@pytest.mark.parametrize(("text", "policy"), [
    pytest.param("carbon-time+least-cost", Policy("carbon-time", "least-cost"), id="both"),
    pytest.param("carbon-time", Policy("carbon-time", "weighted-cost"), id="when-alone"),
    pytest.param("spread", Policy("run-now", "spread"), id="where-alone"),
    pytest.param(" run-now + spread ", Policy("run-now", "spread"), id="spaces"),
])  # fmt: skip
def test_a_policy_is_named_by_when_and_where_or_one_of_them(text: str, policy: Policy) -> None:
    assert policy_named(text) == policy


@pytest.mark.parametrize("when", WHEN_RULES)
@pytest.mark.parametrize("where", WHERE_RULES)
def test_a_policy_is_found_by_its_name_and_by_its_label(when: str, where: str) -> None:
    policy = Policy(when, where)
    assert policy_named(policy.name) == policy_named(policy.label) == policy


@pytest.mark.parametrize("text", ["", "magic", "spread+run-now", "run-now+", "+spread", "a+b+c"])
def test_an_unknown_name_is_refused_with_those_there_are(text: str) -> None:
    with pytest.raises(BadInput) as fault:
        policy_named(text)
    assert repr(text) in str(fault.value)
    assert all(name in str(fault.value) for name in (*WHEN_RULES, *WHERE_RULES))
    assert "\n" not in str(fault.value)


def test_all_stands_for_every_rule_once_the_baseline_first() -> None:
    policies = policies_named("all")
    assert policies[0] == policy_named(BASELINE)
    assert {policy.when for policy in policies} == set(WHEN_RULES)
    assert {policy.where for policy in policies} == set(WHERE_RULES)
    assert len(policies) == len(set(policies)) == len(WHEN_RULES) + len(WHERE_RULES) - 1


def test_a_list_keeps_its_order_and_names_each_policy_once() -> None:
    named = [policy.label for policy in policies_named("spread,carbon-time,run-now+spread")]
    assert named == ["spread", "carbon-time"]
