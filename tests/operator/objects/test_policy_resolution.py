"""Which GreenPolicy a workload follows."""

import pytest

from greensched_core.custom_resources.policy_lookup import PolicyOrigin
from greensched_operator.objects.green_policy import BUILT_IN, GreenPolicy, resolve

POLICIES = {
    (namespace, name): GreenPolicy(namespace, name)
    for namespace, name in [
        ("system", "default"), ("system", "shared"), ("system", "both"), ("system", "nightly"),
        ("team", "default"), ("team", "both"), ("other", "theirs"),
    ]
}  # fmt: skip


@pytest.mark.parametrize(
    ("namespace", "name", "followed", "origin"),
    [
        pytest.param(
            "team", None, ("team", "default"), PolicyOrigin.NAMESPACE, id="the-namespaces"
        ),
        pytest.param("bare", None, ("system", "default"), PolicyOrigin.CLUSTER, id="the-clusters"),
        pytest.param("team", "both", ("team", "both"), PolicyOrigin.NAMED, id="named-nearest"),
        pytest.param("team", "shared", ("system", "shared"), PolicyOrigin.NAMED, id="named-of-all"),
        pytest.param(
            "system", None, ("system", "default"), PolicyOrigin.CLUSTER, id="operators-own"
        ),
        pytest.param(
            "team", " ", ("team", "default"), PolicyOrigin.NAMESPACE, id="blank-names-none"
        ),
    ],
)
def test_the_nearest_policy_is_followed(
    namespace: str, name: str | None, followed: tuple[str, str], origin: PolicyOrigin
) -> None:
    resolved = resolve(POLICIES, namespace, name, "system")
    assert (resolved.policy, resolved.origin) == (POLICIES[followed], origin)
    assert resolved.fault is None


def test_without_any_policy_the_built_in_one_holds() -> None:
    resolved = resolve({}, "team", None, "system")
    assert (resolved.policy, resolved.origin, resolved.fault) == (
        BUILT_IN,
        PolicyOrigin.BUILT_IN,
        None,
    )


@pytest.mark.parametrize("name", ["nightli", "theirs"])
def test_a_name_that_nobody_has_is_reported_with_what_holds_instead(name: str) -> None:
    resolved = resolve(POLICIES, "team", name, "system")
    assert (resolved.policy, resolved.origin) == (
        POLICIES["team", "default"],
        PolicyOrigin.NAMESPACE,
    )
    assert resolved.fault is not None
    assert f"no GreenPolicy '{name}' in namespace system or team" in resolved.fault
    assert resolved.fault.endswith("GreenPolicy team/default applies instead")
    assert ("(close: nightly)" in resolved.fault) is (name == "nightli")


def test_a_missing_name_without_any_default_is_reported_too() -> None:
    resolved = resolve({}, "team", "nightly", "team")
    assert resolved.fault == (
        "there is no GreenPolicy 'nightly' in namespace team: the built-in policy applies instead"
    )


def test_a_broken_policy_is_not_passed_over_for_the_clusters() -> None:
    broken = GreenPolicy("team", "default", faults=("spec.longestHold: 'x' is not a duration",))
    resolved = resolve({**POLICIES, ("team", "default"): broken}, "team", None, "system")
    assert resolved.policy is broken
    assert resolved.fault is not None
    assert "GreenPolicy team/default cannot be followed, so nothing is held" in resolved.fault
    missing = resolve({("team", "default"): broken}, "team", "x", "system")
    assert missing.fault is not None
    assert "applies instead; GreenPolicy team/default cannot be followed" in missing.fault
