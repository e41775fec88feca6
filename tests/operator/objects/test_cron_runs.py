"""CronJobs: when the next run comes, and what past runs teach."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_core import labels
from greensched_core.errors import BadInput
from greensched_operator.objects.cron_jobs import MOST_RUNTIMES, read_cron_job, with_runtime


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def cron_job(schedule: str = "0 3 * * *", zone: str = "", runtimes: str | None = None) -> bytes:
    said = {} if runtimes is None else {labels.RUNTIMES: runtimes}
    meta = {
        "namespace": "team",
        "name": "nightly",
        "uid": "u",
        "annotations": said | {"other": "x"},
    }
    spec = {"schedule": schedule, **({"timeZone": zone} if zone else {})}
    return json.dumps({"metadata": meta, "spec": spec}).encode()


@pytest.mark.parametrize(
    ("schedule", "zone", "after", "expected"),
    [
        pytest.param("0 3 * * *", "", "2023-06-01T02:59:59", "2023-06-01T03:00:00", id="soon"),
        pytest.param("0 3 * * *", "", "2023-06-01T03:00:00", "2023-06-02T03:00:00",
                     id="the-run-itself-does-not-count"),
        pytest.param("*/15 * * * *", "", "2023-06-01T00:00:01", "2023-06-01T00:15:00",
                     id="quarter-hours"),
        pytest.param("0 3 * * *", "Europe/Berlin", "2023-06-01T00:00:00", "2023-06-01T01:00:00",
                     id="summer-time"),
        pytest.param("@daily", "", "2023-06-01T12:00:00", "2023-06-02T00:00:00", id="named"),
        pytest.param("0 0 ? * 1", "", "2023-06-01T00:00:00", "2023-06-05T00:00:00", id="any-day"),
    ],
)  # fmt: skip
def test_the_next_run_is_what_kubernetes_makes_it(
    schedule: str, zone: str, after: str, expected: str
) -> None:
    assert read_cron_job(cron_job(schedule, zone)).next_run_s(at(after)) == at(expected)


@pytest.mark.parametrize(
    ("schedule", "zone"),
    [
        pytest.param("@every 1h", "", id="unknown-word"),
        pytest.param("TZ=UTC 0 3 * * *", "", id="zone-in-the-schedule"),
        pytest.param("0 3 * * *", "Europe/Nowhere", id="unknown-zone"),
        pytest.param("0 3 * * *", "../../etc/passwd", id="no-zone"),
        pytest.param("0 0 30 2 *", "", id="never"),
        pytest.param("", "", id="empty"),
    ],
)
def test_a_schedule_that_we_cannot_read_has_no_next_run(schedule: str, zone: str) -> None:
    assert read_cron_job(cron_job(schedule, zone)).next_run_s(at("2023-06-01")) is None


@pytest.mark.parametrize(
    ("runtimes", "expected"),
    [
        pytest.param(None, None, id="none-yet"),
        pytest.param("[]", None, id="empty"),
        pytest.param("[60]", 60.0, id="one"),
        pytest.param("[1, 4, 16]", 4.0, id="the-median-of-log-normal-runtimes"),
        pytest.param("[-5, 0, 60]", 60.0, id="no-durations-are-left-out"),
        pytest.param("six", None, id="garbage"),
        pytest.param('{"a": 1}', None, id="other-json"),
    ],
)
def test_the_runtime_is_learned_from_what_is_remembered(
    runtimes: str | None, expected: float | None
) -> None:
    learned_s = read_cron_job(cron_job(runtimes=runtimes)).learned_runtime_s
    assert learned_s == (expected and pytest.approx(expected))


@given(st.lists(st.floats(0.5, 1e6), max_size=80))
def test_what_is_remembered_is_read_again_and_stays_short(runtimes_s: list[float]) -> None:
    text = "[]"
    for each in runtimes_s:
        text = with_runtime(read_cron_job(cron_job(runtimes=text)).runtimes_s, each)
    kept = read_cron_job(cron_job(runtimes=text)).runtimes_s
    assert len(kept) == min(len(runtimes_s), MOST_RUNTIMES)
    assert kept == pytest.approx(runtimes_s[-MOST_RUNTIMES:], rel=0.06)


@pytest.mark.parametrize("raw", [b"", b"[]", b'{"spec": {"schedule": 5}}', b"\xff"])
def test_what_is_no_cron_job_is_refused(raw: bytes) -> None:
    with pytest.raises(BadInput):
        read_cron_job(raw)


@pytest.mark.parametrize(("said", "may_overlap"), [
    ("Allow", True), ("Forbid", False), ("Replace", False), (None, True),
])  # fmt: skip
def test_whether_runs_may_overlap_is_what_its_concurrency_policy_says(
    said: str | None, may_overlap: bool
) -> None:
    spec = {"schedule": "@hourly"} | ({"concurrencyPolicy": said} if said else {})
    found = read_cron_job({"metadata": {"name": "nightly"}, "spec": spec})
    assert found.may_overlap is may_overlap
