"""What release 0.1.0 holds carries `hold-until`; it is held by us too, until it is released."""

import json

import pytest

from greensched_core import labels
from greensched_core.signals.timestamps import format_timestamp, parse_timestamp
from greensched_operator.kueue.workloads import KueueWorkload, free_from_s, workload_work
from greensched_operator.objects.release_patch import ReleaseReason, release_patch
from greensched_operator.objects.workloads import Meta, Work, WorkKind, decode_work
from greensched_operator.release.releaser import decode_stopped, held_object

AT_S = parse_timestamp("2026-11-24T06:00:00Z")
LATEST, PLANNED = "2026-11-24T12:00:00Z", "2026-11-24T09:00:00Z"
OLDER = {
    labels.LATEST_START_OF_010: LATEST,
    labels.HELD_AT: format_timestamp(AT_S),
    labels.PLANNED_START: PLANNED,
    labels.DEADLINE: "6h",
}


def stored(**more: str) -> bytes:
    meta = {"name": "train", "namespace": "team", "uid": "u1", "annotations": OLDER | more}
    template = {"spec": {"schedulerName": labels.SCHEDULER_NAME, "containers": []}}
    return json.dumps(
        {"metadata": meta, "spec": {"suspend": True, "template": template}, "status": {}}
    ).encode()


def job(**more: str) -> Work:
    return decode_work(WorkKind.JOB, stored(**more))


def test_the_operator_holds_it_until_then() -> None:
    assert job().is_held and job().is_marked
    assert job().marks.latest_start_s == parse_timestamp(LATEST)


def test_what_is_planned_anew_counts_from_then_on() -> None:
    anew = job(**{labels.LATEST_START: PLANNED})
    assert anew.marks.latest_start_s == parse_timestamp(PLANNED)
    assert labels.LATEST_START_OF_010 not in anew.annotations


@pytest.mark.parametrize("anew", [None, PLANNED], ids=["as-it-was", "planned-anew"])
def test_the_releaser_starts_it_then(anew: str | None) -> None:
    more = {} if anew is None else {labels.LATEST_START: anew}
    held = held_object(WorkKind.JOB, decode_stopped(stored(**more)))
    assert held is not None and held.until_s == parse_timestamp(anew or LATEST)


def test_of_kueue_it_is_freed_then() -> None:
    queued = KueueWorkload(Meta(name="train", namespace="team", uid="u2", annotations=OLDER))
    assert free_from_s(queued, []) == parse_timestamp(LATEST)
    assert workload_work(queued, job(), "").marks.latest_start_s == parse_timestamp(LATEST)


@pytest.mark.parametrize("kind", [WorkKind.JOB, WorkKind.POD, WorkKind.WORKLOAD])
def test_its_release_takes_both_marks_off(kind: WorkKind) -> None:
    patch = json.loads(release_patch(kind, "u1", ReleaseReason.RUN_NOW, AT_S))
    said = patch["metadata"]["annotations"]
    assert said[labels.LATEST_START] is None and said[labels.LATEST_START_OF_010] is None
