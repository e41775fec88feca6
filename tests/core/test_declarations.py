"""What is declared for a pod: by its Job, else by itself, else by its CronJob."""

from typing import Any

import msgspec
import pytest

from greensched_core import labels
from greensched_core.declarations import Declarations, OwnerDeclarations, OwnerObject
from greensched_core.objects import PodObject, workload_of


def meta(uid: str, runtime: str | None, maker: tuple[str, str] | None = None) -> dict[str, Any]:
    owners: list[dict[str, Any]] = [{"kind": "Node", "uid": "n"}]
    if maker is not None:
        owners.append({"kind": maker[0], "uid": maker[1], "controller": True})
    annotations = {} if runtime is None else {labels.RUNTIME: runtime}
    return {"metadata": {"uid": uid, "annotations": annotations, "ownerReferences": owners}}


def owner(*values: Any) -> OwnerObject:
    return msgspec.convert(meta(*values), OwnerObject)


def pod(runtime: str | None = None) -> PodObject:
    return msgspec.convert(meta("p", runtime, ("Job", "j")), PodObject)


@pytest.mark.parametrize(
    ("job", "own", "cron_job", "counts"),
    [
        pytest.param("10m", None, None, "10m", id="the-jobs"),
        pytest.param("10m", "20m", "30m", "10m", id="the-jobs-before-all"),
        pytest.param(None, "20m", "30m", "20m", id="its-own-before-the-cronjobs"),
        pytest.param(None, None, "30m", "30m", id="the-cronjobs"),
        pytest.param(None, None, None, None, id="none"),
    ],
)
def test_which_runtime_counts(
    job: str | None, own: str | None, cron_job: str | None, counts: str | None
) -> None:
    declared = Declarations()
    declared.jobs.upsert(owner("j", job, ("CronJob", "c")))
    declared.cron_jobs.upsert(owner("c", cron_job))
    assert declared.of(pod(own)).runtime == counts


def test_a_pod_without_a_job_declares_its_own_runtime() -> None:
    declared = Declarations()
    declared.jobs.upsert(owner("another", "10m"))
    assert declared.of(pod("20m")).runtime == "20m"
    assert declared.of(msgspec.convert(meta("p", "5m"), PodObject)).runtime == "5m"


@pytest.mark.parametrize("how", ["deleted", "not-listed", "no-runtime"])
def test_an_object_that_is_gone_declares_nothing(how: str) -> None:
    owners = OwnerDeclarations()
    owners.upsert(owner("j", "10m"))
    owners.upsert(owner("k", "20m"))
    if how == "deleted":
        owners.remove(owner("j", "10m"))
    elif how == "no-runtime":
        owners.upsert(owner("j", None))
    else:
        owners.list_began()
        owners.upsert(owner("k", "20m"))
        owners.list_ended()
    assert (len(owners), owners.get("j")) == (1, None)


def test_objects_that_declare_nothing_take_no_memory_and_long_texts_little() -> None:
    owners = OwnerDeclarations()
    for number in range(100):
        owners.upsert(owner(f"silent-{number}", None, ("JobSet", "s")))
    owners.upsert(owner("j", "1h" * 100_000))
    assert len(owners) == 1
    declared = Declarations()
    declared.jobs = owners
    asked = workload_of(pod(), declared.of(pod()).runtime)
    assert asked.runtime_s is None and labels.RUNTIME in asked.faults[0]


@pytest.mark.parametrize(
    ("job", "own", "cron_job", "counts"),
    [
        pytest.param("a", "b", "c", "a", id="the-jobs-before-all"),
        pytest.param(None, "b", "c", "b", id="its-own-before-the-cronjobs"),
        pytest.param(None, None, "c", "c", id="the-cronjobs"),
        pytest.param("", "b", "c", "", id="a-blank-one-of-the-job-names-none"),
    ],
)
def test_which_policy_counts(
    job: str | None, own: str | None, cron_job: str | None, counts: str
) -> None:
    def named(raw: dict[str, Any], policy: str | None) -> dict[str, Any]:
        raw["metadata"]["annotations"] = {} if policy is None else {labels.POLICY: policy}
        return raw

    declared = Declarations()
    of_job = named(meta("j", None, ("CronJob", "c")), job)
    declared.jobs.upsert(msgspec.convert(of_job, OwnerObject))
    declared.cron_jobs.upsert(msgspec.convert(named(meta("c", None), cron_job), OwnerObject))
    of_pod = msgspec.convert(named(meta("p", None, ("Job", "j")), own), PodObject)
    assert declared.of(of_pod).policy == counts
