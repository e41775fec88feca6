"""Whose word counts of how long a pod runs: its Job's, its own, its CronJob's, in that order."""

from typing import Any

import msgspec
import pytest

from greensched_core import labels
from greensched_core.declared_runtimes import DeclaredRuntimes, OwnerObject, OwnerRuntimes
from greensched_core.objects import PodObject, workload_of


def meta(uid: str, runtime: str | None, maker: tuple[str, str] | None = None) -> dict[str, Any]:
    owners: list[dict[str, Any]] = [{"kind": "Node", "uid": "n"}]
    if maker is not None:
        owners.append({"kind": maker[0], "uid": maker[1], "controller": True})
    said = {} if runtime is None else {labels.RUNTIME: runtime}
    return {"metadata": {"uid": uid, "annotations": said, "ownerReferences": owners}}


def owner(*told: Any) -> OwnerObject:
    return msgspec.convert(meta(*told), OwnerObject)


def pod(runtime: str | None = None) -> PodObject:
    return msgspec.convert(meta("p", runtime, ("Job", "j")), PodObject)


@pytest.mark.parametrize(
    ("job", "own", "cron_job", "counts"),
    [
        pytest.param("10m", None, None, "10m", id="the-jobs"),
        pytest.param("10m", "20m", "30m", "10m", id="the-jobs-before-all"),
        pytest.param(None, "20m", "30m", "20m", id="its-own-before-the-cronjobs"),
        pytest.param(None, None, "30m", "30m", id="the-cronjobs"),
        pytest.param(None, None, None, None, id="nobody's"),
    ],
)
def test_whose_word_counts(
    job: str | None, own: str | None, cron_job: str | None, counts: str | None
) -> None:
    said = DeclaredRuntimes()
    said.jobs.upsert(owner("j", job, ("CronJob", "c")))
    said.cron_jobs.upsert(owner("c", cron_job))
    assert said.of(pod(own)) == counts


def test_a_pod_that_no_job_made_says_it_itself() -> None:
    said = DeclaredRuntimes()
    said.jobs.upsert(owner("another", "10m"))
    assert said.of(pod("20m")) == "20m"
    assert said.of(msgspec.convert(meta("p", "5m"), PodObject)) == "5m"


@pytest.mark.parametrize("how", ["deleted", "not-listed", "says-no-more"])
def test_what_is_gone_says_nothing(how: str) -> None:
    said = OwnerRuntimes()
    said.upsert(owner("j", "10m"))
    said.upsert(owner("k", "20m"))
    if how == "deleted":
        said.remove(owner("j", "10m"))
    elif how == "says-no-more":
        said.upsert(owner("j", None))
    else:
        said.list_began()
        said.upsert(owner("k", "20m"))
        said.list_ended()
    assert (len(said), said.get("j")) == (1, None)


def test_who_says_nothing_takes_no_room_and_a_long_word_little() -> None:
    said = OwnerRuntimes()
    for number in range(100):
        said.upsert(owner(f"silent-{number}", None, ("JobSet", "s")))
    said.upsert(owner("j", "1h" * 100_000))
    assert len(said) == 1
    runtimes = DeclaredRuntimes()
    runtimes.jobs = said
    asked = workload_of(pod(), runtimes.of(pod()))
    assert asked.runtime_s is None and labels.RUNTIME in asked.faults[0]
