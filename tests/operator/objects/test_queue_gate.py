"""Our gate in Kueue's annotation: who writes it, and who takes it off."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_core import labels
from greensched_core.clock import ManualClock
from greensched_operator.objects.queue_gate import GATED_BY, is_ours_in, with_ours, without_ours
from greensched_operator.objects.release_patch import JSON_PATCH, ReleaseReason, release_patch
from greensched_operator.objects.workloads import Work
from greensched_operator.planning.held_works import HeldWorks
from greensched_operator.release.releaser import Releaser, decode_stopped
from greensched_operator.runtime.settings import OperatorSettings
from greensched_operator.webhook.admission import (
    ReviewOutcome,
    ReviewSurroundings,
    Verdict,
    answer,
    decide,
    read_review,
)
from greensched_operator.writing.metrics import ControllerMetrics
from greensched_operator.writing.writing import Writer
from tests.operator.annotated_work import (
    NOW_S,
    api_of,
    marks,
    refused,
    rules,
    stored,
    work_of,
)

SAYS_6H = {labels.DEADLINE: "6h"}
OURS = {GATED_BY: labels.GATE}
NAMES = st.from_regex(r"[a-z]{1,8}\.io/[a-z]{1,8}", fullmatch=True)


def verdict_on(item: dict[str, Any], *, knows_gates: bool = True) -> Verdict:
    request = {"uid": "1", "kind": {"kind": item["kind"]}, "namespace": "team",
               "operation": "CREATE", "object": item}  # fmt: skip
    around = ReviewSurroundings(
        frozenset({labels.SCHEDULER_NAME}),
        rules(),
        kueue_gated_by=knows_gates,
    )
    return decide(read_review(json.dumps({"request": request}).encode()), around, NOW_S)


def arriving(**gates: str) -> dict[str, Any]:
    """Return a Job as Kueue's webhook leaves it: suspended."""
    said = SAYS_6H | ({GATED_BY: gates["gated_by"]} if gates else {})
    return stored(annotations=said, queue="batch")


def gated(until_s: float = NOW_S + 3600.0, gates: str = labels.GATE, **told: Any) -> Work:
    return work_of(
        annotations=marks(until_s=until_s, deadline="6h") | {GATED_BY: gates}, queue="b", **told
    )


def test_a_queued_job_gets_our_gate_and_keeps_its_suspend() -> None:
    verdict = verdict_on(arriving())
    told = json.loads(answer("1", verdict))["response"]
    patch = json.loads(base64.b64decode(told["patch"]))
    assert verdict.outcome == "held"
    assert patch[-1] == {
        "op": "add",
        "path": "/metadata/annotations/kueue.x-k8s.io~1admission-gated-by",
        "value": "greensched.io/hold",
    }
    assert not any(each["path"].startswith("/spec") for each in patch)


@pytest.mark.parametrize(
    ("before", "knows_gates", "after"),
    [
        pytest.param("a.io/x", True, "a.io/x,greensched.io/hold", id="behind-that-of-another"),
        pytest.param("a.io/x,greensched.io/hold", True, "a.io/x,greensched.io/hold", id="copied"),
        pytest.param("a.io/x,greensched.io/hold", False, "a.io/x", id="copied-and-not-held"),
        pytest.param("a.io/x", False, None, id="of-another-and-not-held"),
    ],
)
def test_gates_of_others_stay(before: str, knows_gates: bool, after: str | None) -> None:
    verdict = verdict_on(arriving(gated_by=before), knows_gates=knows_gates)
    written = [each["value"] for each in verdict.patch if each["path"].endswith("gated-by")]
    assert (written[-1] if written else None) == after


def test_a_kueue_that_knows_no_gates_is_left_its_jobs() -> None:
    assert verdict_on(arriving(), knows_gates=False) == Verdict(ReviewOutcome.IGNORED)


@given(st.lists(NAMES, unique=True, max_size=4))
def test_what_others_wrote_comes_back_when_ours_goes(names: list[str]) -> None:
    others = ",".join(names)
    assert is_ours_in(with_ours(others))
    assert without_ours(with_ours(others)) == others
    assert with_ours(with_ours(others)) == with_ours(others)


def test_the_release_takes_off_our_gate_alone_and_never_touches_suspend() -> None:
    body = release_patch(
        "Job",
        "u",
        ReleaseReason.PLANNED_START,
        NOW_S,
        "a.io/x,greensched.io/hold",
        more={"a/b": "c"},
    )
    at = "/metadata/annotations/"
    assert json.loads(body) == [
        {"op": "replace", "path": "/metadata/uid", "value": "u"},
        {
            "op": "test",
            "path": f"{at}kueue.x-k8s.io~1admission-gated-by",
            "value": "a.io/x,greensched.io/hold",
        },
        {"op": "replace", "path": f"{at}kueue.x-k8s.io~1admission-gated-by", "value": "a.io/x"},
        {"op": "add", "path": f"{at}greensched.io~1latest-start", "value": ""},
        {"op": "remove", "path": f"{at}greensched.io~1latest-start"},
        {"op": "add", "path": f"{at}greensched.io~1hold-until", "value": ""},
        {"op": "remove", "path": f"{at}greensched.io~1hold-until"},
        {"op": "add", "path": f"{at}greensched.io~1hold-reason", "value": ""},
        {"op": "remove", "path": f"{at}greensched.io~1hold-reason"},
        {"op": "add", "path": f"{at}greensched.io~1released-at", "value": "2023-11-14T22:13:20Z"},
        {"op": "add", "path": f"{at}greensched.io~1release-reason", "value": "planned-start"},
        {"op": "add", "path": f"{at}a~1b", "value": "c"},
    ]


@pytest.mark.parametrize(
    ("work", "is_held", "is_others"),
    [
        pytest.param(gated(), True, False, id="gated"),
        pytest.param(gated(gates="a.io/x,greensched.io/hold"), True, False, id="with-others"),
        pytest.param(gated(gates="a.io/x"), False, True, id="its-user-took-our-gate-off"),
        pytest.param(gated(is_stopped=False), False, True, id="kueue-did-not-heed-it"),
        pytest.param(work_of(annotations=OURS, queue="b"), True, False, id="mark-taken-off"),
        pytest.param(work_of(annotations=SAYS_6H, queue="b"), False, False, id="kueues"),
        pytest.param(work_of(annotations=marks(), queue="b"), False, True, id="queued-later"),
    ],
)  # fmt: skip
def test_of_queued_jobs_we_hold_those_with_our_gate(
    work: Work, is_held: bool, is_others: bool
) -> None:
    works = HeldWorks(frozenset({labels.SCHEDULER_NAME}))
    works.put(work)
    assert (bool(works.held), works.news.started) == (is_held, [work] * is_others)


@pytest.mark.parametrize(
    ("annotations", "until_s"),
    [
        pytest.param(marks(until_s=NOW_S) | OURS, NOW_S, id="gated"),
        pytest.param(OURS, float("-inf"), id="gated-without-an-end"),
        pytest.param(marks(until_s=NOW_S), None, id="suspended-by-kueue"),
        pytest.param(SAYS_6H, None, id="none-of-ours"),
    ],
)
def test_the_releaser_sees_our_gate(annotations: dict[str, str], until_s: float | None) -> None:
    item = stored(annotations=annotations, queue="batch")
    assert decode_stopped(json.dumps(item)).until_s == until_s


async def test_operator_and_releaser_send_the_same_patch() -> None:
    sent: list[tuple[str, str, Any]] = []

    def take(request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        body[-1]["value"] = ""  # why differs
        sent.append((request.url.path, request.headers["content-type"], body))
        return httpx.Response(200, json={})

    clock, client = ManualClock(NOW_S + 1e6), api_of(take)
    await Writer(client, clock, clock, ControllerMetrics()).release(
        gated(), ReleaseReason.LATEST_START
    )
    releaser = Releaser(OperatorSettings(), client, clock)
    item = stored(annotations=marks(deadline="6h") | OURS, queue="b")
    releaser.jobs.upsert(decode_stopped(json.dumps(item)))
    async with asyncio.TaskGroup() as passes:
        releaser.release_due(passes)
    assert sent[0] == sent[1]
    assert sent[0][:2] == ("/apis/batch/v1/namespaces/team/jobs/train", JSON_PATCH)


async def test_gates_that_others_changed_meanwhile_are_tried_again() -> None:
    clock = ManualClock(NOW_S)
    writer = Writer(api_of(lambda _: refused(422)), clock, clock, ControllerMetrics())
    assert await writer.release(gated(), ReleaseReason.RUN_NOW) is False
