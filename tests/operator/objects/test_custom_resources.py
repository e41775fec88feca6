"""GreenPolicy and JobPowerProfile on a real API server: refusals, defaults, columns."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from greensched_operator.holding.acceptance import accept_policy, accept_profile, changed_status
from greensched_operator.objects import green_policy, job_power_profile
from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.errors import CommandFailed

ROOT = Path(__file__).parents[3]
DEFINITIONS = ROOT / "deploy/helm/greensched/files/crds"
KINDS = {"GreenPolicy": "greenpolicies", "JobPowerProfile": "jobpowerprofiles"}
PAGE = ROOT / "docs" / "green-policy.md"
SHOWN = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
NAMESPACE = "custom-resources"
NIGHT = {"from": "22:00", "to": "06:00"}
WORK = {"duration": "1h", "watts": 200}


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """A control plane that knows our resources, with a namespace for them."""
    for plural in KINDS.values():
        # As Helm's, so that a chart that another test installs has nobody to conflict with.
        control_plane.kubectl(
            *["apply", "--server-side", "--force-conflicts", "--field-manager=helm"],
            *["-f", str(DEFINITIONS / f"{plural}.yaml")],
        )
        definition = f"crd/{plural}.greensched.io"
        control_plane.kubectl("wait", "--for=condition=Established", definition)
    control_plane.kubectl("create", "namespace", NAMESPACE)
    yield control_plane
    control_plane.kubectl("delete", "namespace", NAMESPACE, "--wait=false")


def manifest(kind: str, spec: dict[str, Any], name: str = "tried") -> str:
    return json.dumps(
        {
            "apiVersion": "greensched.io/v1alpha1",
            "kind": kind,
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": spec,
        }
    )


def dry_run(cluster: ControlPlane, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    """Return the object as the API server would store it; raise CommandFailed where it refuses."""
    asked = ("create", "--dry-run=server", "-o", "json", "-f", "-")
    stored: dict[str, Any] = json.loads(cluster.kubectl(*asked, stdin=manifest(kind, spec)))
    return stored


NO_DURATION = "such as 90s, 1h30m or 2d"
POLICY_REFUSALS = [
    ("mode", {"mode": "force"}, 'supported values: "off", "shadow", "enforce"'),
    ("bare-off-in-yaml", {"mode": False}, 'supported values: "off", "shadow", "enforce"'),
    ("weight", {"weights": {"carbon": -1}}, "a weight cannot be negative; 0 leaves its part out"),
    ("heavy", {"weights": {"carbon": 1e7}}, "only the ratio matters, so scale all weights down"),
    (
        "weights",
        {"weights": {"cost": 0, "carbon": 0, "performance": 0}},
        "set at least one above 0",
    ),
    ("delay", {"defaultDelay": "tomorrow"}, NO_DURATION),
    ("negative-hold", {"longestHold": "-1h"}, NO_DURATION),
    ("hold-without-unit", {"longestHold": "24"}, NO_DURATION),
    ("runtime", {"defaultRuntime": "0h0m"}, "work that takes no time cannot be planned"),
    ("delay-of-a-start", {"startDelay": "five minutes"}, NO_DURATION),
    ("all-in-time", {"onTimeTargetPercent": 100}, "must be from 50 to 99.99"),
    ("hardly-any-in-time", {"onTimeTargetPercent": 40}, "must be from 50 to 99.99"),
    ("error", {"runtimeErrorPercent": -1}, "runtimeErrorPercent must be from 0 to 300"),
    ("held", {"maxHeldSharePercent": 101}, "a percentage must be from 0 to 100"),
    ("saving", {"leastSavingPercent": -2}, "a percentage must be from 0 to 100"),
    ("limit", {"carbonLimit": "never"}, "carbonLimit must be not-above-now or none, or a whole"),
    ("negative-price", {"carbonLimit": -1}, "price per tonne of CO2e, from 0 to 1000000"),
    ("high-price", {"carbonLimit": 1_000_001}, "price per tonne of CO2e, from 0 to 1000000"),
    ("no-end", {"quietHours": [{"from": "22:00"}]}, "quiet hours need from and to"),
    ("from", {"quietHours": [{**NIGHT, "from": "24:00"}]}, "00:00 to 23:59, such as 22:00"),
    ("to", {"quietHours": [{**NIGHT, "to": "6:00"}]}, "00:00 to 24:00, such as 06:00"),
    ("same", {"quietHours": [{**NIGHT, "to": "22:00"}]}, "write from 00:00 to 24:00"),
    ("offset", {"quietHours": [{**NIGHT, "timeZone": "+02:00"}]}, "must be an IANA name"),
    (
        "zone",
        {"quietHours": [{**NIGHT, "timeZone": "Europe/Berln"}]},
        "unknown time zone Europe/Berln",
    ),
    ("day", {"quietHours": [{**NIGHT, "days": ["Monday"]}]}, 'supported values: "Mon"'),
    ("no-day", {"quietHours": [{**NIGHT, "days": []}]}, "leave days out for every day"),
    ("budget-of-no-period", {"budget": {"carbonKg": 1}}, "one of Day, Week and Month"),
    ("empty-budget", {"budget": {"period": "Day"}}, "needs energyKwh or carbonKg"),
    ("budget", {"budget": {"period": "Day", "carbonKg": -1}}, "a budget cannot be negative"),
    ("run", {"pause": {"minimumRun": "x"}}, NO_DURATION),
    ("pause", {"pause": {"minimumPause": "x"}}, NO_DURATION),
    ("rule", {"whenPolicy": "cheapest"}, "choose onnx or one of these rules: carbon-time"),
    (
        "bundle-unread",
        {"bundle": {"configMapName": "mine"}},
        "set whenPolicy: onnx or remove bundle",
    ),
    ("bundle", {"whenPolicy": "onnx", "bundle": {}}, "a bundle needs configMapName"),
    (
        "config-map",
        {"whenPolicy": "onnx", "bundle": {"configMapName": "Mine"}},
        "lower case letters, digits",
    ),
    ("misspelt", {"defaultDelays": "1h"}, 'unknown field "spec.defaultDelays"'),
]
PROFILE_REFUSALS = [
    ("no-work", {}, "at least one phase of work in spec.work"),
    ("empty-work", {"work": []}, "at least one phase of work in spec.work"),
    ("no-watts", {"work": [{"duration": "1h"}]}, "a phase needs duration and watts"),
    ("duration", {"work": [{**WORK, "duration": "1 hour"}]}, NO_DURATION),
    ("no-time", {"work": [{**WORK, "duration": "0s"}]}, "its duration must be above zero"),
    ("negative", {"work": [{**WORK, "watts": -1}]}, "watts cannot be negative"),
    ("milliwatts", {"work": [{**WORK, "watts": 2e6}]}, "the unit is watts, not milliwatts"),
    ("startup", {"work": [WORK], "startup": [{"watts": 1}]}, "a phase needs duration and watts"),
    ("resume", {"work": [WORK], "resume": [{"watts": 1}]}, "a phase needs duration and watts"),
    (
        "saves-startup",
        {"work": [WORK], "startup": [{**WORK, "checkpoint": True}]},
        'unknown field "spec.startup[0].checkpoint"',
    ),
    ("every", {"work": [WORK], "checkpoints": {"every": "0s"}}, "every must be above zero"),
    ("every-word", {"work": [WORK], "checkpoints": {"every": "often"}}, NO_DURATION),
    ("at", {"work": [WORK], "checkpoints": {"at": ["0s"]}}, "a checkpoint must be above 0s"),
    ("at-word", {"work": [WORK], "checkpoints": {"at": ["50%"]}}, NO_DURATION),
]
REFUSALS = [
    *(pytest.param("GreenPolicy", spec, told, id=name) for name, spec, told in POLICY_REFUSALS),
    *(
        pytest.param("JobPowerProfile", spec, told, id=f"profile-{name}")
        for name, spec, told in PROFILE_REFUSALS
    ),
]


@pytest.mark.parametrize(("kind", "spec", "told"), REFUSALS)
def test_it_is_refused_with_a_sentence_that_helps(
    cluster: ControlPlane, kind: str, spec: dict[str, Any], told: str
) -> None:
    with pytest.raises(CommandFailed) as refused:
        dry_run(cluster, kind, spec)
    assert told in str(refused.value)


def told_by_definition(plural: str) -> set[str]:
    """Return every message of a rule in a definition."""
    text = (DEFINITIONS / f"{plural}.yaml").read_text(encoding="utf-8")
    return set(messages(yaml.safe_load(text)))


def messages(part: object) -> Iterator[str]:
    """Yield the message of each rule within a part of a definition."""
    if isinstance(part, dict):
        for rule in part.get("x-kubernetes-validations", ()):
            yield rule["message"]
        for each in part.values():
            yield from messages(each)
    elif isinstance(part, list):
        for each in part:
            yield from messages(each)


@pytest.mark.parametrize(
    ("plural", "table"),
    [("greenpolicies", POLICY_REFUSALS), ("jobpowerprofiles", PROFILE_REFUSALS)],
)
def test_every_rules_message_is_tried(plural: str, table: list[tuple[str, Any, str]]) -> None:
    tried = [told for _, _, told in table]
    untried = {
        message
        for message in told_by_definition(plural)
        if not any(told in message for told in tried)
    }
    assert untried == set()


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"quietHours": [{**NIGHT, "timeZone": "America/Argentina/Buenos_Aires"}]},
                     id="zone-of-three-parts"),
        pytest.param({"quietHours": [{"from": "00:00", "to": "24:00", "days": ["Sat", "Sun"]}]},
                     id="whole-days"),
        pytest.param({"longestHold": "1d2h3m4.5s6ms"}, id="every-unit"),
        pytest.param({"weights": {"carbon": 0}}, id="one-weight-of-zero"),
        pytest.param({"whenPolicy": "onnx", "bundle": {"configMapName": "a.b-c"}}, id="bundle"),
        pytest.param({"carbonLimit": "none"}, id="no-carbon-limit"),
        pytest.param({"carbonLimit": 80}, id="price-per-tonne"),
        pytest.param({"budget": {"period": "Month", "energyKwh": 0}}, id="budget-of-nothing"),
    ],
)  # fmt: skip
def test_what_the_api_server_takes_the_operator_follows(
    cluster: ControlPlane, spec: dict[str, Any]
) -> None:
    assert green_policy.parse(dry_run(cluster, "GreenPolicy", spec)).faults == ()


@pytest.mark.parametrize("text", SHOWN, ids=["cluster", "namespace", "named", "profile"])
def test_what_the_page_shows_is_taken(cluster: ControlPlane, text: str) -> None:
    shown = yaml.safe_load(text)
    stored = dry_run(cluster, shown["kind"], shown["spec"])
    if shown["kind"] == "GreenPolicy":
        assert green_policy.parse(stored).faults == ()
    else:
        assert job_power_profile.parse_job_power_profile(stored).faults == ()


def test_what_is_left_out_is_written_as_the_code_has_it(cluster: ControlPlane) -> None:
    stored = dry_run(cluster, "GreenPolicy", {})
    assert stored["spec"]["mode"] == "shadow"
    assert stored["spec"]["weights"] == {"cost": 1, "carbon": 1, "performance": 0.1}
    assert "defaultDelay" not in stored["spec"]
    followed = green_policy.parse(stored)
    bare = green_policy.parse({"metadata": stored["metadata"]})
    assert followed == bare


def test_a_policy_shows_what_matters_in_one_line(cluster: ControlPlane) -> None:
    spec = {"mode": "enforce", "defaultDelay": "6h"}
    cluster.kubectl("apply", "-f", "-", stdin=manifest("GreenPolicy", spec, "shown"))
    found = json.loads(cluster.kubectl("get", "gpol", "shown", "-n", NAMESPACE, "-o", "json"))
    policy = green_policy.parse(found)
    status = changed_status(None, policy.generation, accept_policy(policy), 1_767_268_800.0)
    write_status(cluster, "greenpolicies", "shown", status)
    header, row = table(cluster, "greenpolicies", "shown")
    assert header == ["NAME", "MODE", "WHEN", "DELAY", "ACCEPTED", "REASON", "AGE"]
    assert row[:6] == ["shown", "enforce", "planned-window", "6h", "True", "Followed"]


def test_a_profile_shows_what_matters_in_one_line(cluster: ControlPlane) -> None:
    startup = [{"duration": "2m", "watts": 80}]
    spec = {"startup": startup, "work": [WORK], "checkpoints": {"every": "10m"}}
    cluster.kubectl("apply", "-f", "-", stdin=manifest("JobPowerProfile", spec, "shown"))
    found = json.loads(cluster.kubectl("get", "jpp", "shown", "-n", NAMESPACE, "-o", "json"))
    parsed = job_power_profile.parse_job_power_profile(found)
    assert parsed.profile is not None
    generation = parsed.profile.generation
    status = changed_status(None, generation, accept_profile(parsed), 1_767_268_800.0)
    write_status(cluster, "jobpowerprofiles", "shown", status)
    header, row = table(cluster, "jobpowerprofiles", "shown")
    assert header[1:6] == ["STARTUP", "WORK", "WATTS", "CHECKPOINT", "ACCEPTED"]
    assert row[:7] == ["shown", "2m", "1h", "200", "10m", "True", "Followed"]


def write_status(
    cluster: ControlPlane, plural: str, name: str, status: dict[str, Any] | None
) -> None:
    patch = ("--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
    cluster.kubectl("patch", plural, name, "-n", NAMESPACE, *patch)
    found = cluster.kubectl("get", plural, name, "-n", NAMESPACE, "-o", "json")
    assert json.loads(found)["status"] == status, "the definition keeps all of it"


def table(cluster: ControlPlane, plural: str, name: str) -> tuple[list[str], list[str]]:
    """Return the header and the row that kubectl shows, columns of `-o wide` included."""
    shown = cluster.kubectl("get", plural, name, "-n", NAMESPACE, "-o", "wide")
    header, row = shown.splitlines()
    return header.split(), row.split()


@pytest.mark.parametrize("plural", KINDS.values())
def test_every_field_is_explained(cluster: ControlPlane, plural: str) -> None:
    explained = cluster.kubectl("explain", "--recursive", f"{plural}.spec")
    assert "FIELDS" in explained
    definition = json.loads(cluster.kubectl("get", "crd", f"{plural}.greensched.io", "-o", "json"))
    (version,) = definition["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert [name for name, field in leaves(spec, "spec") if "description" not in field] == []


def leaves(part: dict[str, Any], name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every field below a part of a schema."""
    inner = part.get("properties") or part.get("items", {}).get("properties") or {}
    for key, field in inner.items():
        yield f"{name}.{key}", field
        yield from leaves(field, f"{name}.{key}")
