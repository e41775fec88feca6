"""`greensched status` on a real API server, read as a stranger would."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from greensched_core import labels
from greensched_core.signals.timestamps import format_timestamp
from greensched_testbed.controlplane import ControlPlane

if TYPE_CHECKING:
    from tests.cli.conftest import Run, Users


LEASES = "/apis/coordination.k8s.io/v1/namespaces"


def line_of(text: str, name: str) -> str:
    (line,) = (each for each in text.splitlines() if each.startswith(f"{name} "))
    return line


async def test_what_waits_stands_in_a_table_with_its_plan_and_its_saving(users: Users) -> None:
    await users.policy(users.namespace, "enforce")
    await users.hold_job("train")
    await users.hold_pod("one", planned_start="", decision="")
    done = users.status()
    assert (done.returncode, done.stderr) == (0, "")
    job, pod = line_of(done.stdout, "job/train"), line_of(done.stdout, "pod/one")
    assert re.search(r" 2 .* \(in (2h|1h5\dm)\) .* -75 %  -56 %  120 \(now 480\)  default$", job)
    assert " 0.5 " in pod and "no plan yet" in pod and "75 %" not in pod
    assert "2 held, 2.5 cores, 1 without a plan yet." in done.stdout


ODD = {
    "latest-start-a-word": ({"latest_start": "soon"}, "'soon' is not an RFC 3339"),
    "latest-start-gone": ({"latest_start": ""}, "latest-start was removed"),
    "decision-no-json": ({"decision": "{"}, f"{labels.DECISION}: "),
    "decision-no-object": ({"decision": "[]"}, f"{labels.DECISION}: "),
    "plan-a-word": ({"planned_start": "now"}, "'now' is not an RFC 3339"),
    "deadline-a-word": ({"deadline": "tomorrow"}, "'tomorrow' is neither"),
    "deadline-past": ({"deadline": "2020-01-01T00:00:00Z"}, "is in the past"),
    "the-last-hour": ({"latest_start": "9999-12-31T23:59:59Z"}, "31 Dec 9999"),
    "what-steers-a-terminal": ({"hold_reason": "[bold]\x1b[31mred"}, "job/what-steers"),
}


async def test_an_annotation_nobody_would_write_is_reported_and_breaks_nothing(
    users: Users,
) -> None:
    for name, (said, _) in ODD.items():
        await users.hold_job(name, **said)
    table = users.status()
    assert (table.returncode, table.stderr) == (0, "")
    assert len([line_of(table.stdout, f"job/{name}") for name in ODD]) == len(ODD)
    for name, (_, told) in ODD.items():
        one = users.status(name)
        assert (one.returncode, one.stderr) == (0, "")
        assert "\x1b" not in one.stdout and f"job/{name} is held" in one.stdout
        lines = [line for line in table.stdout.splitlines() if f"/{name}" in line]
        assert any(told in line for line in lines), lines


async def test_whatever_is_past_its_latest_start_is_named_with_what_starts_it(
    users: Users,
) -> None:
    late = format_timestamp(round(users.now_s - 300))
    await users.hold_job("late", latest_start=late)
    await users.hold_job("just", latest_start=format_timestamp(round(users.now_s + 300)))
    told = users.status().stdout
    assert "OVERDUE 5m" in line_of(told, "job/late")
    assert f"greensched release job/late -n {users.namespace}." in told


async def test_a_silent_leader_is_dead_and_a_leader_that_speaks_is_not(users: Users) -> None:
    await users.lead(silent_s=300)
    told = users.status().stdout
    assert re.search(r"operator +leader-1 is dead, last renewal 5m\d*s? ago", told)
    assert "leader-1 has not renewed its Lease for 5m" in told
    path = f"/apis/coordination.k8s.io/v1/namespaces/{users.own}/leases/greensched-operator"
    await users.api.delete(path)
    await users.lead()
    alive = users.status().stdout
    assert re.search("operator +leader-1 leads, last renewal", alive) and "is dead" not in alive


async def test_it_tells_when_the_webhook_hears_nobody(users: Users) -> None:
    """As where a leader and a releaser may not write their signs, and are Ready all the same."""
    heartbeat = "greensched-heartbeat"
    await users.lead()
    told = users.status().stdout
    assert re.search("heartbeat +none", told)
    assert "Neither leader nor releaser has ever given a sign of life" in told
    await users.lead(silent_s=300, lease=heartbeat, lasts_s=60)
    assert "has given a sign of life for 5m" in users.status().stdout
    await users.api.delete(f"{LEASES}/{users.own}/leases/{heartbeat}")
    await users.lead(lease=heartbeat, lasts_s=60)
    told = users.status().stdout
    assert re.search("heartbeat +last sign of life", told) and "Neither leader" not in told


async def test_the_operator_is_found_by_its_lease(users: Users) -> None:
    await users.lead(silent_s=-3600)  # of all Leases on this API server the newest
    done = users.run("status", "-n", users.namespace, "--kubeconfig", str(users.kubeconfig))
    assert f"(namespace {users.own})" in done.stdout


async def test_without_any_policy_the_built_in_one_is_reported_with_where_to_look(
    users: Users,
) -> None:
    text = users.status().stdout
    assert f"the built-in policy: shadow (no GreenPolicy default in {users.own})" in text
    assert f"! There is no GreenPolicy named default in namespace {users.own}" in text
    await users.policy(users.own, "enforce")
    assert "the built-in policy" not in users.status().stdout


@pytest.mark.parametrize(("mode", "told"), [("shadow", "only reports"), ("off", "does nothing")])
async def test_a_policy_that_holds_nothing_is_reported_with_what_to_write(
    users: Users, mode: str, told: str
) -> None:
    await users.policy(users.own, mode)
    text = users.status().stdout
    assert f"GreenPolicy {users.own}/default has mode {mode}, which {told}" in text
    assert "spec.mode enforce" in text


async def test_a_policy_that_is_not_followed_as_it_is_written_is_named_with_why(
    users: Users,
) -> None:
    await users.policy(users.own, "enforce")
    await users.policy(users.namespace, "enforce")
    await users.hold_job("train")
    why = "bundle nope: there is no such ConfigMap"
    told = f"! GreenPolicy {users.namespace}/default is not followed as it is written: {why}."
    for told_of in ((), ("train",)):
        assert "not followed" not in users.status(*told_of).stdout
    await users.refuse_policy(users.namespace, why)
    for told_of in ((), ("train",)):
        assert told in users.status(*told_of).stdout


async def test_a_signal_that_its_first_provider_does_not_give_is_named(users: Users) -> None:
    name, path = f"zone-{users.namespace}", "/apis/greensched.io/v1alpha1/gridsignals"
    spec = {"zone": name, "price": [{"nordPool": {"area": "SE3"}}, {"static": {}}]}
    kind = {"apiVersion": "greensched.io/v1alpha1", "kind": "GridSignal"}
    await users.create(path, {**kind, "metadata": {"name": name}, "spec": spec})
    now = format_timestamp(float(int(time.time())))
    conditions = [
        {"type": name, "status": status, "reason": reason, "message": "", "lastTransitionTime": now}
        for name, status, reason in (
            ("CarbonFallback", "False", "FirstProviderServes"),
            ("PriceFallback", "True", "Unreachable"),
        )
    ]
    body = json.dumps({"status": {"conditions": conditions}}).encode()
    try:
        await users.api.patch(f"{path}/{name}/status", body)
        text = users.status().stdout
        assert f"first provider fails: {name} price (Unreachable)." in text
        assert f"{name} carbon" not in text
    finally:
        await users.api.delete(f"{path}/{name}")


async def test_one_workload_is_reported_in_full_in_the_users_own_time(users: Users) -> None:
    await users.policy(users.namespace, "enforce")
    await users.hold_job("train")
    done = users.status("job/train", TZ="Asia/Kathmandu")
    for told in (
        "job/train is held: 2 cores wait.",
        "by the forecast of zone ZZ-CLEAN",
        ", by deadline",
        "1h, from its annotation greensched.io/runtime",
        "43 % of its weighted cost, against the soonest start",
        "-75 %: 120 g/kWh over the planned run, 480 at the soonest start",
        "-56 %: 40 per MWh over the planned run, 90 at the soonest start",
        f"greensched release job/train -n {users.namespace}",
        "+0545",
    ):
        assert told in done.stdout
    assert "Suspended: Job suspended" in done.stdout


async def test_a_stranger_to_greensched_is_distinguished_from_held_work(users: Users) -> None:
    await users.hold_job("theirs", latest_start="", held_at="")
    assert "suspended, but not by GreenSched" in users.status("theirs").stdout
    assert "Nothing is held" in users.status().stdout
    missing = users.status("nobody")
    assert missing.returncode == 1
    assert f"There is no nobody (Job or pod) in namespace {users.namespace}." in missing.stdout


async def test_a_user_of_one_namespace_gets_a_table_and_what_could_not_be_read(
    users: Users,
) -> None:
    await users.hold_job("train")
    kubeconfig = str(await users.limited("view"))
    done = users.run("status", "--kubeconfig", kubeconfig)  # of the kubeconfig's namespace
    assert (done.returncode, done.stderr) == (0, "")
    assert "-75 %" in line_of(done.stdout, "job/train")
    refused = line_of(done.stdout, "not read")
    assert "the operator's Lease" in refused and "you have no right to read them" in refused
    everywhere = users.run("status", "-A", "--kubeconfig", kubeconfig)
    assert (everywhere.returncode, everywhere.stdout) == (1, "")
    assert "name a namespace of yours with -n" in everywhere.stderr
    watched = users.run("status", "-A", "--watch", "--kubeconfig", kubeconfig)
    assert watched.returncode == 1, "asking again would not help"
    assert watched.stderr.count("cannot be listed") == 1


async def test_no_table_is_wider_than_the_terminal_and_no_name_is_cut(users: Users) -> None:
    name = "a-name-as-long-as-the-api-server-lets-the-name-of-a-job-be-1234"
    await users.hold_job(name)
    for columns in ("80", "200"):
        told = users.status(COLUMNS=columns, FORCE_COLOR="1", NO_COLOR="1", TERM="xterm").stdout
        plain = re.sub(r"\x1b\[[0-9;]*m", "", told).partition(" held, ")[0]
        assert max(map(len, plain.splitlines())) <= int(columns)
        table = plain.split("POLICY" if columns == "200" else "LATEST START")[1].split("\n\n")[0]
        first = "".join(re.findall(r"^([a-z0-9/-]+)", table, re.MULTILINE))
        assert first == f"job/{name}"


async def test_watch_looks_again_and_ends_quietly(users: Users) -> None:
    await users.hold_job("train")
    command = [
        sys.executable, "-m", "greensched_cli", "status", "--watch", "-n", users.namespace,
        "--kubeconfig", str(users.kubeconfig),
    ]  # fmt: skip
    watching = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # noqa: ASYNC220 - nothing else waits for this loop
    assert watching.stdout is not None
    seen = 0
    while seen < 2:
        line = watching.stdout.readline()
        assert line, "it ended by itself"
        seen += line.startswith("job/train ")
    watching.send_signal(signal.SIGINT)
    _, errors = watching.communicate(timeout=60)
    assert (watching.returncode, errors) == (0, "")


def test_on_a_cluster_without_greensched_it_says_so(
    bare_cluster: ControlPlane, greensched: Run
) -> None:
    done = greensched("status", "-A", "--kubeconfig", str(bare_cluster.kubeconfig))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Nothing is held in all namespaces.\n")
    assert "No operator has ever led in namespace greensched: is it installed there" in done.stdout
    assert "GridSignals, GreenPolicies: the API server does not know them" in done.stdout
    emergency = greensched(
        "release",
        "--emergency-release",
        "on",
        "--yes",
        "--kubeconfig",
        str(bare_cluster.kubeconfig),
    )
    assert emergency.returncode == 1
    assert "there is no namespace greensched: name the one" in emergency.stderr


async def test_json_holds_the_same_for_programs(users: Users) -> None:
    await users.hold_job("train")
    found: dict[str, Any] = json.loads(users.status("-o", "json").stdout)
    (held,) = found["held"]
    assert (held["name"], held["savingShare"], held["cpuCores"]) == ("train", 0.4321, 2.0)
    assert found["operator"]["leader"] is None and found["unread"] == {}
    await users.hold_pod("train")
    ours, other = json.loads(users.status("train", "-o", "json").stdout)
    assert {name: each for name, each in ours.items() if name != "events"} == held
    assert (other["kind"], other["name"]) == ("Pod", "train")
    assert json.loads(users.status("nobody", "-o", "json").stdout) == []


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("-A", "-n", "x"), id="one-and-all"),
        pytest.param(("-A", "train"), id="a-name-everywhere"),
        pytest.param(("cronjob/train",), id="what-is-never-held"),
    ],
)
def test_what_contradicts_itself_is_refused_in_a_line(
    greensched: Run, control_plane: ControlPlane, arguments: tuple[str, ...]
) -> None:
    done = greensched("status", *arguments, "--kubeconfig", str(control_plane.kubeconfig))
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
