"""Jobs of Kueue's queues: what `greensched status` and `greensched release` make of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from greensched_cli.reading.cluster_reading import read_works
from greensched_cli.reading.named_work import find_named, parse_target
from greensched_cli.reading.operator_state import ClusterPart
from greensched_cli.reading.pieces import Pieces, Scope
from greensched_cli.release.releasing import UserReleaser
from greensched_core import labels
from greensched_core.clock import ManualClock
from greensched_core.kubernetes_api import MERGE_PATCH
from greensched_operator.objects.queue_gate import GATED_BY, KUEUE_QUEUE
from tests.operator.annotated_work import NOW_S, api_of, marks, refused, stored

if TYPE_CHECKING:
    from tests.cli.conftest import Users

KUEUE = "/apis/kueue.x-k8s.io"
WORKLOADS = f"{KUEUE}/v1beta2/namespaces/team/workloads"
TRAIN = stored(annotations={labels.DEADLINE: "6h"}, queue="batch")


def workload(**conditions: str) -> dict[str, Any]:
    owner = {"kind": "Job", "name": "train", "uid": "train"}
    told = marks(planned_start="2023-11-15T00:00:00Z")
    meta = {"name": "job-train-1", "namespace": "team", "uid": "w", "annotations": told}
    found = [{"type": name, "status": text} for name, text in conditions.items()]
    return {"metadata": {**meta, "ownerReferences": [owner]}, "status": {"conditions": found}}


class Server:
    """An API server with one queued Job, its Workload, and whatever else it is told to answer."""

    def __init__(self, item: dict[str, Any], refusals: dict[str, int] | None = None) -> None:
        self.item = item
        self.refusals = refusals or {}
        self.patched: list[tuple[str, str, Any]] = []

    def answer(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        if path in self.refusals:
            return refused(self.refusals[path])
        if request.method == "PATCH":
            body = json.loads(request.content)
            self.patched.append((path, request.headers["content-type"], body))
            return httpx.Response(200, json=self.item)
        listed = {"/jobs": [TRAIN], "/workloads": [self.item]}
        found = next((items for end, items in listed.items() if path.endswith(end)), [])
        alone = {"/jobs/train": TRAIN, "/workloads/job-train-1": self.item}
        everything = {"metadata": {}, "items": found, "preferredVersion": {"version": "v1beta2"}}
        one = next((item for end, item in alone.items() if path.endswith(end)), everything)
        return httpx.Response(200, json=one)


async def read(server: Server) -> tuple[list[str], Pieces]:
    pieces = Pieces(api_of(server.answer))
    works = await read_works(pieces, Scope("team"), with_running=True)
    return [f"{each.kind}/{each.name} {each.cpu_cores:g}" for each in works], pieces


@pytest.mark.parametrize(
    ("item", "shown"),
    [
        pytest.param(workload(QuotaReserved="True"), ["Workload/job-train-1 1"], id="held"),
        pytest.param(workload(Admitted="True"), [], id="admitted"),
        pytest.param(workload(Finished="True"), [], id="ended"),
    ],
)
async def test_a_job_that_waits_for_our_check_is_shown(
    item: dict[str, Any], shown: list[str]
) -> None:
    assert (await read(Server(item)))[0] == shown


@pytest.mark.parametrize(
    ("path", "status", "unread"),
    [
        pytest.param(KUEUE, 404, set(), id="no-kueue"),
        pytest.param(WORKLOADS, 403, {ClusterPart.WORKLOADS}, id="no-right"),
    ],
)
async def test_what_cannot_be_read_is_reported_where_there_is_a_kueue(
    path: str, status: int, unread: set[ClusterPart]
) -> None:
    shown, pieces = await read(Server(workload(), {path: status}))
    assert (shown, set(pieces.unread)) == ([], unread)


@pytest.mark.parametrize("named", ["job/train", "workload/job-train-1", "wl/job-train-1"])
async def test_the_name_of_its_job_or_its_own_releases_a_workload(named: str) -> None:
    server = Server(workload())
    client = api_of(server.answer)
    (found,) = await find_named(client, "team", parse_target(named))
    assert found.name == "job-train-1"
    (result,) = await UserReleaser(client, ManualClock(NOW_S), is_dry_run=False).named(
        "team", [parse_target(named)]
    )
    assert result.name == "team/workload/job-train-1"
    ((path, how, body),) = server.patched
    assert (path, how) == (f"{WORKLOADS}/job-train-1", MERGE_PATCH)
    said = body["metadata"]["annotations"]
    assert (said[labels.RUN_NOW], said[labels.RELEASE_REASON]) == ("true", "run-now")
    assert "spec" not in body


async def test_our_gate_is_shown_and_taken_off_and_suspend_stays(users: Users) -> None:
    gates = f"example.com/wait,{labels.GATE}"
    await users.hold_job("train")
    meta = {"labels": {KUEUE_QUEUE: "batch"}, "annotations": {GATED_BY: gates}}
    await users.change_job("train", {"metadata": meta})
    assert "job/train" in users.status().stdout
    done = users.release("train")
    assert "released: other gates still hold it: example.com/wait" in done.stdout
    job = await users.job("train")
    assert job["spec"]["suspend"] is True
    assert job["metadata"]["annotations"][GATED_BY] == "example.com/wait"
    assert job["metadata"]["annotations"][labels.RUN_NOW] == "true"
    again = users.release("job/train")
    assert "it was started at" in again.stdout


async def test_a_job_that_waits_for_kueue_alone_is_not_ours_to_start(users: Users) -> None:
    await users.hold_job("theirs", latest_start="", held_at="")
    await users.change_job("theirs", {"metadata": {"labels": {KUEUE_QUEUE: "batch"}}})
    done = users.release("theirs")
    assert done.returncode == 1
    assert "it waits in a Kueue queue, not for GreenSched" in done.stderr
    assert (await users.job("theirs"))["spec"]["suspend"] is True
