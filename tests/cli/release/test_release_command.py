"""`greensched release` on a real API server, with no operator anywhere."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from greensched_core import labels
from greensched_core.errors import ApiUnavailable
from greensched_core.signals.timestamps import format_timestamp
from greensched_testbed.controlplane import ControlPlane

if TYPE_CHECKING:
    from tests.cli.conftest import Run, Users

EMERGENCY_RELEASE = "greensched-emergency-release"


def said(item: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = item["metadata"]["annotations"]
    return found


async def test_a_job_and_a_pod_start_though_no_operator_lives(users: Users) -> None:
    await users.hold_job("train")
    await users.hold_pod("one")
    done = users.release("job/train", "one")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{users.namespace}/job/train: released\n" in done.stdout
    job, pod = await users.job("train"), await users.pod("one")
    assert job["spec"]["suspend"] is False and "schedulingGates" not in pod["spec"]
    for each in (job, pod):
        assert said(each)[labels.RUN_NOW] == "true"
        assert said(each)[labels.RELEASE_REASON] == "run-now"
        assert labels.LATEST_START not in said(each)
    again = users.release("job/train")
    assert again.returncode == 0 and "not held: it was started at" in again.stdout
    told = users.status("--released").stdout
    assert "job/train" in told and "pod/one" in told and "run-now" in told


@pytest.mark.parametrize("latest_start", ["soon", "2020-01-01T00:00:00Z"])
async def test_what_is_spoilt_or_overdue_starts_as_well(users: Users, latest_start: str) -> None:
    await users.hold_job("odd", latest_start=latest_start, planned_start="", decision="{")
    assert users.release("odd").returncode == 0
    assert (await users.job("odd"))["spec"]["suspend"] is False


async def test_a_pod_whose_mark_was_taken_away_starts_as_well(users: Users) -> None:
    await users.hold_pod("unmarked", latest_start="")
    assert users.release("--all").returncode == 0
    assert "schedulingGates" not in (await users.pod("unmarked"))["spec"]


async def test_gates_of_others_stay_and_are_named(users: Users) -> None:
    await users.hold_pod("one", "example.com/wait")
    done = users.release("one")
    assert "other gates still hold it: example.com/wait" in done.stdout
    assert (await users.pod("one"))["spec"]["schedulingGates"] == [{"name": "example.com/wait"}]


async def test_what_others_suspended_stays_and_says_how_to_resume_it(users: Users) -> None:
    await users.hold_job("theirs", latest_start="", held_at="")
    await users.hold_job("ours-once", released_at=format_timestamp(1.0), latest_start="")
    done = users.release("theirs", "ours-once", "nobody")
    assert done.returncode == 1
    assert done.stderr.count("GreenSched did not suspend it") == 2
    assert "nobody (Job or pod): not started: nothing has that name" in done.stderr
    assert (await users.job("theirs"))["spec"]["suspend"] is True


async def test_a_gang_starts_together(users: Users) -> None:
    for name in ("first", "second"):
        await users.hold_job(name, gang="both")
    await users.hold_job("alone", gang="other")
    done = users.release("first")
    assert "job/second: released: of the same gang" in done.stdout
    assert (await users.job("second"))["spec"]["suspend"] is False
    assert (await users.job("alone"))["spec"]["suspend"] is True


async def test_a_name_that_two_have_is_asked_about(users: Users) -> None:
    await users.hold_job("same")
    await users.hold_pod("same")
    done = users.release("same")
    assert done.returncode == 1 and "use job/same or pod/same" in done.stderr
    assert (await users.job("same"))["spec"]["suspend"] is True


async def test_a_dry_run_changes_nothing(users: Users) -> None:
    before = await users.hold_job("train")
    done = users.release("--all", "--dry-run")
    assert (done.returncode, done.stdout) == (
        0,
        f"{users.namespace}/job/train: would be released\n",
    )
    done = users.release("job/train", "job/none", "--dry-run", "-o", "json")
    assert (done.returncode, done.stderr) == (1, "")
    assert json.loads(done.stdout) == [
        {"name": f"{users.namespace}/job/train", "outcome": "would be released", "text": None},
        {"name": f"{users.namespace}/job/none", "outcome": "not started",
         "text": "nothing has that name"},
    ]  # fmt: skip
    assert said(await users.job("train")) == said(before)


@pytest.mark.parametrize(("role", "status"), [("edit", 0), ("view", 1)])
async def test_the_users_own_rights_decide(users: Users, role: str, status: int) -> None:
    await users.hold_job("train")
    done = users.run("release", "train", "--kubeconfig", str(await users.limited(role)))
    assert done.returncode == status
    assert ("you may not patch Jobs in namespace" in done.stderr) == bool(status)
    assert (await users.job("train"))["spec"]["suspend"] is bool(status)


async def test_all_namespaces_are_touched_only_by_who_is_sure(users: Users) -> None:
    await users.hold_job("train")
    asked = users.greensched("release", "-A")
    assert asked.returncode == 2 and "--yes" in asked.stderr
    assert (await users.job("train"))["spec"]["suspend"] is True
    done = users.greensched("release", "-A", "--yes")
    assert f"{users.namespace}/job/train: released\n" in done.stdout


async def is_there(users: Users) -> bool:
    try:
        await users.get(f"/api/v1/namespaces/{users.own}/configmaps/{EMERGENCY_RELEASE}")
    except ApiUnavailable as fault:
        assert fault.status == 404
        return False
    return True


async def test_the_emergency_release_is_turned_on_and_off_twice_each(users: Users) -> None:
    for word, is_on in (
        ("status", False),
        ("on", True),
        ("on", True),
        ("off", False),
        ("off", False),
    ):
        done = users.greensched("release", "--emergency-release", word, "--yes")
        assert (done.returncode, done.stderr) == (0, "")
        assert f"The emergency release is {'on' if is_on else 'off'}" in done.stdout
        assert f"kubectl -n {users.own} {'delete' if is_on else 'create'} configmap" in done.stdout
        assert await is_there(users) == is_on
        assert ("ON: nothing is held" in users.status().stdout) == is_on
        shown = users.greensched("release", "--emergency-release", "status", "-o", "json")
        assert json.loads(shown.stdout) == {
            "namespace": users.own, "isNamespaceCertain": True, "isEmergencyRelease": is_on,
        }  # fmt: skip


async def test_the_emergency_release_asks_first(users: Users) -> None:
    done = users.greensched("release", "--emergency-release", "on")
    assert done.returncode == 2 and "--yes" in done.stderr
    assert not await is_there(users)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        pytest.param((), "name what to start", id="nothing-named"),
        pytest.param(("x", "--all"), "exclude each other", id="a-name-and-all"),
        pytest.param(
            ("x", "--emergency-release", "on"),
            "exclude each other",
            id="a-name-and-the-emergency-release",
        ),
        pytest.param(
            ("--emergency-release", "on", "--dry-run"), "no dry run", id="a-dry-emergency-release"
        ),
        pytest.param(("-A", "-n", "x"), "leave one of them out", id="one-and-all"),
        pytest.param(("deployment/x",), "names no work", id="what-is-never-held"),
        pytest.param(("job/",), "names no work", id="no-name"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_line(
    greensched: Run, control_plane: ControlPlane, arguments: tuple[str, ...], told: str
) -> None:
    done = greensched("release", *arguments, "--kubeconfig", str(control_plane.kubeconfig))
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert told in done.stderr
