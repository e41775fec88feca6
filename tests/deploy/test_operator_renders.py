"""What `helm template` makes of the operator's values."""

import json
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.helm

Objects = list[dict[str, Any]]
Render = Callable[..., Objects]

PROCESSES = ("controller", "webhook", "releaser")
KNOWN_POLICY = ["--api-versions", "greensched.io/v1alpha1/GreenPolicy"]


def one(objects: Objects, kind: str, name: str = "greensched") -> dict[str, Any]:
    found = [o for o in objects if o["kind"] == kind and o["metadata"]["name"] == name]
    assert len(found) == 1, f"{kind}/{name}: {len(found)} found"
    return found[0]


def container(objects: Objects, process: str) -> dict[str, Any]:
    spec = one(objects, "Deployment", f"greensched-{process}")["spec"]["template"]["spec"]
    (found,) = spec["containers"]
    assert isinstance(found, dict)
    return found


def names(objects: Objects, kind: str) -> set[str]:
    return {o["metadata"]["name"] for o in objects if o["kind"] == kind}


@pytest.mark.parametrize("process", [*PROCESSES, "emergency-release"])
def test_each_process_runs_as_an_account_of_its_own(render: Render, process: str) -> None:
    objects = render()
    kind = "Job" if process == "emergency-release" else "Deployment"
    pod = one(objects, kind, f"greensched-{process}")["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == f"greensched-{process}"
    assert pod["containers"][0]["args"] == [process]
    assert pod["containers"][0]["image"].startswith("localhost/greensched-operator:")
    assert pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"] is True
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        subjects = one(objects, kind, f"greensched-{process}")["subjects"]
        assert [each["name"] for each in subjects] == [f"greensched-{process}"]


def test_two_plan_and_answer_and_one_small_one_frees(render: Render) -> None:
    objects = render()
    replicas = {
        process: one(objects, "Deployment", f"greensched-{process}")["spec"]["replicas"]
        for process in PROCESSES
    }
    assert replicas == {"controller": 2, "webhook": 2, "releaser": 1}
    assert container(objects, "releaser")["resources"]["requests"] == {
        "cpu": "10m",
        "memory": "64Mi",
    }


def test_the_webhook_holds_up_nobody(render: Render) -> None:
    webhooks = one(render(), "MutatingWebhookConfiguration")["webhooks"]
    assert [each["rules"][0]["resources"] for each in webhooks] == [["jobs"], ["pods"]]
    for each in webhooks:
        assert (each["failurePolicy"], each["timeoutSeconds"]) == ("Ignore", 2)
        assert (each["sideEffects"], each["admissionReviewVersions"]) == ("None", ["v1"])
        assert each["rules"][0]["operations"] == ["CREATE"]
        assert "caBundle" not in each["clientConfig"], "it is the leader's"
        assert each["clientConfig"]["service"]["name"] == "greensched-webhook"
        (expression,) = each["namespaceSelector"]["matchExpressions"]
        assert expression["operator"] == "NotIn"
        assert set(expression["values"]) == {
            *{"kube-system", "kube-node-lease", "kube-public", "greensched"}
        }


def test_further_namespaces_are_left_out_by_name_or_label(render: Render) -> None:
    objects = render(
        *["--set", "operator.webhook.excludedNamespaces={payments}"],
        *["--set", "operator.webhook.namespaceSelector.matchLabels.team=research"],
        "--set-json",
        'operator.webhook.namespaceSelector.matchExpressions=[{"key":"a","operator":"Exists"}]',
    )
    for each in one(objects, "MutatingWebhookConfiguration")["webhooks"]:
        ours, theirs = each["namespaceSelector"]["matchExpressions"]
        assert {"payments", "kube-system"} <= set(ours["values"])
        assert theirs == {"key": "a", "operator": "Exists"}
        assert each["namespaceSelector"]["matchLabels"] == {"team": "research"}


def test_only_the_opt_in_and_our_annotations_are_sent(render: Render) -> None:
    objects = render("--set", "scheduler.name=green")
    for each in one(objects, "MutatingWebhookConfiguration")["webhooks"]:
        conditions = {c["name"]: c["expression"] for c in each["matchConditions"]}
        asked = conditions["opted-in-or-annotated"]
        assert 'schedulerName in ["green"]' in asked
        for name in ("deadline", "max-delay", "window", "checkpointable"):
            assert f'"greensched.io/{name}"' in asked
        assert ("not-served" in conditions) is (each["rules"][0]["resources"] == ["pods"])


def test_without_replicas_nobody_is_asked_unless_an_address_is_given(render: Render) -> None:
    none = ["--set", "operator.webhook.replicas=0,operator.controller.replicas=0"]
    assert names(render(*none), "MutatingWebhookConfiguration") == set()
    url = "https://10.0.0.5:9443/mutate"
    objects = render(*none, "--set", f"operator.webhook.url={url}")
    for each in one(objects, "MutatingWebhookConfiguration")["webhooks"]:
        assert each["clientConfig"] == {"url": url}
    data = one(objects, "ConfigMap", "greensched-operator")["data"]
    assert data["GREENSCHED_OPERATOR_WEBHOOK_HOSTS"] == '["10.0.0.5"]'


def test_without_operator_there_is_nothing_of_it(render: Render) -> None:
    objects = render("--set", "operator.enabled=false")
    left = {o["metadata"]["name"] for o in objects if o["kind"] != "CustomResourceDefinition"}
    assert {name for name in left if "extender" not in name and "scheduler" not in name} == {
        "greensched-view",
        "greensched-edit",
        "greensched-explain",
    }


def test_the_first_policy_is_shadow_and_the_controllers_to_create(render: Render) -> None:
    objects = render()
    assert names(objects, "GreenPolicy") == set(), "Helm would not know its kind yet"
    text = one(objects, "ConfigMap", "greensched-operator-policy")["data"]["policy.json"]
    later = one(render(*KNOWN_POLICY), "GreenPolicy", "default")
    assert json.loads(text) == later
    assert later["spec"] == {"mode": "shadow"}
    assert later["metadata"]["namespace"] == "greensched"
    assert later["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


@pytest.mark.parametrize("mode", ["off", "shadow", "enforce"])
def test_the_policys_values_are_its_spec(render: Render, mode: str) -> None:
    values = ["--set", f"policy.mode={mode}", "--set", "policy.spec.defaultDelay=6h"]
    objects = render(*KNOWN_POLICY, *values)
    assert one(objects, "GreenPolicy", "default")["spec"] == {"mode": mode, "defaultDelay": "6h"}


def test_without_a_policy_the_controller_may_create_none(render: Render) -> None:
    objects = render(*KNOWN_POLICY, "--set", "policy.create=false")
    assert names(objects, "GreenPolicy") == set()
    assert "greensched-operator-policy" not in names(objects, "ConfigMap")
    rules = one(objects, "Role", "greensched-controller")["rules"]
    assert not [rule for rule in rules if "greenpolicies" in rule["resources"]]


def test_what_runs_before_an_uninstall_ends_before_helm_gives_up(render: Render) -> None:
    job = one(render(), "Job", "greensched-emergency-release")
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-delete"
    assert 180 < job["spec"]["activeDeadlineSeconds"] < 300
    longest = render("--set", "operator.settings.emergencyReleaseTimeoutS=230")
    assert (
        one(longest, "Job", "greensched-emergency-release")["spec"]["activeDeadlineSeconds"] < 300
    )
    assert names(render("--set", "operator.uninstall.release=false"), "Job") == set()


def test_each_process_may_be_drained_one_at_a_time_scraped_and_closed(render: Render) -> None:
    objects = render("--set", "networkPolicy.enabled=true,serviceMonitor.enabled=true")
    wanted = {f"greensched-{process}" for process in PROCESSES}
    for kind in ("PodDisruptionBudget", "Service", "NetworkPolicy", "ServiceMonitor"):
        assert wanted <= names(objects, kind), kind
    for process in PROCESSES:
        assert {port["name"] for port in container(objects, process)["ports"]} >= {"health"}
        policy = one(objects, "NetworkPolicy", f"greensched-{process}")["spec"]
        assert policy["policyTypes"] == ["Ingress", "Egress"]
        budget = one(objects, "PodDisruptionBudget", f"greensched-{process}")["spec"]
        assert budget["selector"] == policy["podSelector"]


def test_a_changed_mode_restarts_nothing_and_a_changed_setting_does(render: Render) -> None:
    def checksum(*arguments: str) -> str:
        found = one(render(*arguments), "Deployment", "greensched-controller")
        annotations: dict[str, str] = found["spec"]["template"]["metadata"]["annotations"]
        return annotations["checksum/config"]

    before = checksum()
    assert checksum("--set", "policy.mode=enforce") == before
    assert checksum("--set", "operator.settings.replanEveryS=60") != before
