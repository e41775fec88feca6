"""What `helm template` makes of the values, for the default and for each option."""

import subprocess
from collections.abc import Callable
from typing import Any

import pytest
import yaml

pytestmark = pytest.mark.helm

# Who reads Secrets: the webhook its certificate, the controller that and keys of providers.
OWN_SECRETS = {"greensched-controller", "greensched-webhook"}
Objects = list[dict[str, Any]]
Render = Callable[..., Objects]


def one(objects: Objects, kind: str, name: str) -> dict[str, Any]:
    found = [o for o in objects if o["kind"] == kind and o["metadata"]["name"] == name]
    assert len(found) == 1, f"{kind}/{name}: {len(found)} found"
    return found[0]


def scheduler_config(objects: Objects) -> dict[str, Any]:
    text = one(objects, "ConfigMap", "greensched-scheduler")["data"]["config.yaml"]
    config: dict[str, Any] = yaml.safe_load(text)
    return config


def extender_entry(objects: Objects) -> dict[str, Any]:
    (entry,) = scheduler_config(objects)["extenders"]
    assert isinstance(entry, dict)
    return entry


def environment(objects: Objects) -> dict[str, str]:
    data: dict[str, str] = one(objects, "ConfigMap", "greensched-extender")["data"]
    return {name.removeprefix("GREENSCHED_EXTENDER_"): value for name, value in data.items()}


def pod(objects: Objects, name: str) -> dict[str, Any]:
    spec: dict[str, Any] = one(objects, "Deployment", name)["spec"]["template"]["spec"]
    return spec


def test_the_extender_entry_never_blocks_a_pod_and_sends_names_only(render: Render) -> None:
    entry = extender_entry(render())
    assert entry == {
        "urlPrefix": "http://greensched-extender.greensched.svc:8888",
        "prioritizeVerb": "prioritize",
        "weight": 10,
        "httpTimeout": "200ms",
        "ignorable": True,
        "nodeCacheCapable": True,
    }


@pytest.mark.parametrize(
    ("value", "verb"),
    [("extender.powerLimits.enabled", "filterVerb"), ("extender.bind.enabled", "bindVerb")],
)
def test_a_verb_is_registered_only_when_it_is_on(render: Render, value: str, verb: str) -> None:
    assert verb not in extender_entry(render())
    tls = "tls.enabled=true,tls.existingSecret=s,tls.client.enabled=true"
    on = extender_entry(render("--set", f"{value}=true,{tls},tls.client.existingSecret=c"))
    assert on[verb] == verb.removesuffix("Verb")


def test_bind_on_gives_the_extender_the_right_to_bind_and_tells_it_so(render: Render) -> None:
    def may_bind(objects: Objects) -> bool:
        rules = one(objects, "ClusterRole", "greensched-extender")["rules"]
        return any("pods/binding" in rule["resources"] for rule in rules)

    off, on = (
        render(),
        render(
            "--set", "extender.bind.enabled=true,extender.bind.allowWithoutClientCertificates=true"
        ),
    )
    assert (may_bind(off), environment(off)["BIND_ENABLED"]) == (False, "false")
    assert (may_bind(on), environment(on)["BIND_ENABLED"]) == (True, "true")


def test_another_address_of_the_extender_is_taken_as_it_is(render: Render) -> None:
    entry = extender_entry(render("--set", "scheduler.extenderUrl=http://127.0.0.1:18888/"))
    assert entry["urlPrefix"] == "http://127.0.0.1:18888"


@pytest.mark.parametrize(
    ("cluster", "tag"),
    [
        ("v1.31.4-gke.1000", "v1.31.4"),
        ("v1.30.2-eks-abc", "v1.30.2"),
        ("v1.33.1+k3s1", "v1.33.1"),
        ("v1.29.0", "v1.29.0"),
        ("v1.37.0-rc.1", "v1.37.0-rc.1"),
    ],
)
def test_the_scheduler_follows_the_cluster_without_its_suffix(
    render: Render, cluster: str, tag: str
) -> None:
    (container,) = pod(render("--kube-version", cluster), "greensched-scheduler")["containers"]
    assert container["image"] == f"registry.k8s.io/kube-scheduler:{tag}"


def test_a_stated_tag_wins_over_the_clusters_version(render: Render) -> None:
    objects = render("--set", "scheduler.image.tag=v1.35.2")
    (container,) = pod(objects, "greensched-scheduler")["containers"]
    assert container["image"].endswith(":v1.35.2")


def test_the_scheduler_elects_its_leader_under_a_name_of_its_own(render: Render) -> None:
    election = scheduler_config(render())["leaderElection"]
    assert election["resourceName"] == "greensched-scheduler"
    assert election["resourceNamespace"] == "greensched"


def test_load_spreading_scores_are_off_and_what_users_ask_for_is_on(render: Render) -> None:
    (profile,) = scheduler_config(render())["profiles"]
    score = profile["plugins"]["score"]
    assert {p["name"] for p in score["disabled"]} == {
        "NodeResourcesFit",
        "NodeResourcesBalancedAllocation",
        "ImageLocality",
    }
    assert {p["name"]: p["weight"] for p in score["enabled"]} == {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
    }


def test_the_cheapest_node_beats_all_other_scores_together(render: Render) -> None:
    config = scheduler_config(render())
    others = sum(p["weight"] * 100 for p in config["profiles"][0]["plugins"]["score"]["enabled"])
    assert 10 * config["extenders"][0]["weight"] * 10 > others


def test_replicas_may_be_packed_by_switching_default_spread_off(render: Render) -> None:
    (profile,) = scheduler_config(render("--set", "scheduler.defaultSpread=false"))["profiles"]
    (plugin,) = profile["pluginConfig"]
    assert plugin["args"] == {"defaultingType": "List", "defaultConstraints": []}


@pytest.mark.parametrize("name", ["greensched-scheduler", "greensched-extender"])
def test_pods_are_locked_down_and_never_wait_for_our_scheduler(render: Render, name: str) -> None:
    spec = pod(render(), name)
    assert spec["schedulerName"] == "default-scheduler"
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    (container,) = spec["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"livenessProbe", "readinessProbe", "startupProbe"} <= set(container)


def test_two_extenders_are_spread_and_drained_one_at_a_time(render: Render) -> None:
    objects = render()
    assert one(objects, "Deployment", "greensched-extender")["spec"]["replicas"] == 2
    assert one(objects, "PodDisruptionBudget", "greensched-extender")["spec"]["maxUnavailable"] == 1
    constraints = pod(objects, "greensched-extender")["topologySpreadConstraints"]
    assert [(c["topologyKey"], c["whenUnsatisfiable"]) for c in constraints] == [
        ("kubernetes.io/hostname", "ScheduleAnyway"),
        ("topology.kubernetes.io/zone", "ScheduleAnyway"),
    ]


def test_a_second_scheduler_stands_elsewhere_and_is_drained_apart(render: Render) -> None:
    objects = render("--set", "scheduler.replicas=2")
    budget = one(objects, "PodDisruptionBudget", "greensched-scheduler")
    assert budget["spec"]["maxUnavailable"] == 1
    constraints = pod(objects, "greensched-scheduler")["topologySpreadConstraints"]
    selector = constraints[0]["labelSelector"]["matchLabels"]
    assert selector == budget["spec"]["selector"]["matchLabels"]
    assert selector["app.kubernetes.io/component"] == "scheduler"


def test_the_explain_port_is_in_no_service(render: Render) -> None:
    ports = [p["port"] for o in render() if o["kind"] == "Service" for p in o["spec"]["ports"]]
    assert 8888 in ports
    assert 8889 not in ports


def test_settings_reach_the_extender_as_its_environment(render: Render) -> None:
    settings = environment(
        render(
            "--set-json",
            'extender.settings={"zoneMap":{"europe-west3":"DE"},"utilisationRatio":0.4,"defaultPue":null}',
            "--set",
            "scheduler.name=green",
        )
    )
    assert settings["SCHEDULER_NAMES"] == '["green"]'
    assert settings["ZONE_MAP"] == '{"europe-west3":"DE"}'
    assert settings["UTILISATION_RATIO"] == "0.4"
    assert settings["MAX_BODY_BYTES"] == "33554432"
    assert "PUE" not in settings, "null leaves the service its own default"


@pytest.mark.parametrize(
    ("changed", "deployment"),
    [
        ("scheduler.extenderWeight=11", "greensched-scheduler"),
        ("extender.settings.weightCarbon=2", "greensched-extender"),
    ],
)
def test_a_changed_value_rolls_the_deployment_that_reads_it(
    render: Render, changed: str, deployment: str
) -> None:
    def checksums(objects: Objects) -> dict[str, str]:
        return {
            o["metadata"]["name"]: o["spec"]["template"]["metadata"]["annotations"][
                "checksum/config"
            ]
            for o in objects
            if o["kind"] == "Deployment"
        }

    before, after = checksums(render()), checksums(render("--set", changed))
    assert {name for name in before if before[name] != after[name]} == {deployment}


def test_every_object_carries_the_recommended_labels(render: Render) -> None:
    wanted = {"name", "instance", "component", "part-of", "managed-by", "version"}
    for item in render():
        if item["kind"] != "CustomResourceDefinition":
            labels = item["metadata"]["labels"]
            assert {f"app.kubernetes.io/{label}" for label in wanted} <= set(labels), item
            assert "helm.sh/chart" in labels


def test_crds_are_kept_and_can_be_left_to_others(render: Render) -> None:
    crds = [item for item in render() if item["kind"] == "CustomResourceDefinition"]
    plurals = {crd["metadata"]["name"].removesuffix(".greensched.io") for crd in crds}
    assert {"gridsignals", "greenpolicies", "jobpowerprofiles"} <= plurals
    for crd in crds:
        assert crd["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    kinds = {o["kind"] for o in render("--set", "crds.install=false")}
    assert "CustomResourceDefinition" not in kinds


def test_no_right_names_a_wildcard_or_secrets_of_other_namespaces(render: Render) -> None:
    objects = render(
        "--set", "extender.bind.enabled=true,extender.bind.allowWithoutClientCertificates=true"
    )
    roles = [o for o in objects if o["kind"] in {"Role", "ClusterRole"}]
    assert len(roles) > 5
    for item in roles:
        own = item["kind"] == "Role" and item["metadata"]["name"] in OWN_SECRETS
        for rule in item["rules"]:
            assert "*" not in {*rule["resources"], *rule["verbs"], *rule["apiGroups"]}
            assert own or "secrets" not in rule["resources"]


def test_the_chart_lints_clean_and_strictly(
    helm_offline: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    result = helm_offline("lint", "--strict", "CHART")
    assert result.returncode == 0, result.stdout
    assert "0 chart(s) failed" in result.stdout


def test_a_fraction_given_by_set_is_a_number(render: Render) -> None:
    settings = environment(
        render(
            *["--set", "extender.settings.weightCarbon=0.5,extender.settings.utilisationRatio=.25"],
            *[
                "--set",
                "extender.settings.defaultPue=1.05,extender.settings.exchangeRates.USD=0.92",
            ],
        )
    )
    assert (settings["WEIGHT_CARBON"], settings["UTILISATION_RATIO"]) == ("0.5", ".25")
    assert settings["DEFAULT_PUE"] == "1.05"
    assert "USD" in settings["EXCHANGE_RATES"]


def test_own_labels_join_the_charts(render: Render) -> None:
    deployment = one(
        render("--set", "extender.podLabels.team=green"), "Deployment", "greensched-extender"
    )
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert labels["team"] == "green"
    assert labels["app.kubernetes.io/component"] == "extender"


def test_an_extender_that_ends_first_waits_until_nobody_is_sent_to_it(render: Render) -> None:
    (container,) = pod(render(), "greensched-extender")["containers"]
    assert "sleep(5)" in container["lifecycle"]["preStop"]["exec"]["command"][-1]


def test_without_bind_the_extender_only_lists_and_watches(render: Render) -> None:
    rules = one(render(), "ClusterRole", "greensched-extender")["rules"]
    assert {verb for rule in rules for verb in rule["verbs"]} == {"list", "watch"}
