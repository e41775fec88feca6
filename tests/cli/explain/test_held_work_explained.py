"""Whoever asks why a held pod or Job has no node reads that it is held, and what starts it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Users


@pytest.mark.parametrize("kind", ["pod", "job"])
async def test_held_work_is_explained_as_held(users: Users, kind: str) -> None:
    await (users.hold_pod("train") if kind == "pod" else users.hold_job("train"))
    where = ("-n", users.namespace, "--kubeconfig", str(users.kubeconfig))
    done = users.run("explain", "train", "--install-namespace", users.own, *where)
    assert done.returncode == 1
    target = f"{kind}/train -n {users.namespace}"
    assert "GreenSched holds it: planned for 20" in done.stderr
    assert f"Start it now: `greensched release {target}`" in done.stderr
    assert "There is no pod" not in done.stderr or kind == "job"


async def test_a_job_that_its_user_suspended_is_not_called_held(users: Users) -> None:
    jobs = f"/apis/batch/v1/namespaces/{users.namespace}/jobs"
    held = await users.hold_job("train")
    await users.create(jobs, {"metadata": {"name": "own"}, "spec": held["spec"] | {
        "selector": None, "template": {"spec": held["spec"]["template"]["spec"]}}})  # fmt: skip
    where = ("-n", users.namespace, "--kubeconfig", str(users.kubeconfig))
    done = users.run("explain", "own", "--install-namespace", users.own, *where)
    assert "GreenSched holds it" not in done.stderr
