"""A controller whose rights are taken, and given back: what it says, leaves and makes up."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from greensched_core import labels
from greensched_core.errors import TaskEnded
from greensched_core.kubernetes_api import ApiAccess, ApiClient
from greensched_core.lateness import LATE_AFTER_S
from greensched_extender.__main__ import Process as Extender
from greensched_extender.settings import ExtenderSettings
from greensched_operator.controller.controller_process import ControllerProcess
from greensched_operator.release.releaser import Releaser
from greensched_operator.runtime.heartbeat import BEATS_EVERY_S
from greensched_operator.runtime.settings import OperatorSettings
from greensched_operator.webhook.webhook import WebhookProcess
from greensched_testbed.ports import free_port
from tests.operator.controller.test_kopf_ends import Valve, valve

__all__ = ["valve"]  # a fixture

if TYPE_CHECKING:
    from greensched_testbed.controlplane import ControlPlane
    from tests.operator.conftest import Place, Running

RBAC = "/apis/rbac.authorization.k8s.io/v1"
GROUPS = ["", labels.GROUP, "coordination.k8s.io", "admissionregistration.k8s.io"]
ALL: list[dict[str, Any]] = [
    {"apiGroups": GROUPS, "resources": ["*"], "verbs": ["*"]},
    {"apiGroups": ["batch"], "resources": ["cronjobs"], "verbs": ["*"]},
]
JOBS = {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["*"]}
STATUS = {"apiGroups": ["batch"], "resources": ["jobs/status"], "verbs": ["*"]}
JOBS_PATH = "/apis/batch/v1/jobs"
WATCH_AGE = "greensched_operator_watch_age_seconds"
SECONDS = 20.0  # "within seconds", on a busy machine; nothing was written in 120 before


@dataclass
class Account:
    """A ServiceAccount whose rights to Jobs come and go."""

    api: ApiClient
    name: str
    place: Place  # by this account

    async def may(self, *rules: dict[str, Any]) -> None:
        """Give it these rights beside those that it always has, and no others."""
        await self._set_rules([*ALL, *rules])

    async def keep_only(self, *resources: str) -> None:
        """Leave it every right to these core resources, and no others."""
        await self._set_rules([{"apiGroups": [""], "resources": resources, "verbs": ["*"]}])

    async def _set_rules(self, rules: Sequence[dict[str, Any]]) -> None:
        body = json.dumps({"rules": rules}).encode()
        await self.api.patch(f"{RBAC}/clusterroles/{self.name}", body)


@pytest_asyncio.fixture
async def account(place: Place, control_plane: ControlPlane) -> AsyncIterator[Account]:
    """An account that may do all that a controller does."""
    name = f"rights-{uuid.uuid4().hex[:6]}"
    accounts = f"/api/v1/namespaces/{place.own}/serviceaccounts"
    await place.create(accounts, {"metadata": {"name": name}})
    await place.create(f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": ALL})
    await place.create(f"{RBAC}/clusterrolebindings", {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": place.own}],
    })  # fmt: skip
    folder = await asyncio.to_thread(control_plane.service_account_dir, place.own, name)
    token = (folder / "token").read_text().strip()
    verify = ssl.create_default_context(cafile=folder / "ca.crt")
    access = ApiAccess(place.access.base_url, verify, lambda: token)
    async with ApiClient(access) as client:
        settings = place.settings.model_copy(update={"kueue": False, "lease_duration_s": 1.5})
        own = replace(place, api=client, access=access, settings=settings)
        yield Account(place.api, name, own)
    for kind in ("clusterrolebindings", "clusterroles"):
        await place.api.delete(f"{RBAC}/{kind}/{name}")


async def holder(place: Place) -> str:
    """Return who holds the Lease."""
    path = f"/apis/coordination.k8s.io/v1/namespaces/{place.own}/leases"
    found = {each["metadata"]["name"]: each for each in (await place.get(path))["items"]}
    lease = found.get(place.settings.lease)
    return str(lease["spec"]["holderIdentity"]) if lease else ""


def held_job(place: Place, name: str) -> dict[str, Any]:
    """Return a Job as the webhook leaves it."""
    job = place.job(name, deadline="6h", runtime="1h")
    until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 4 * 3600))
    job["metadata"]["annotations"] |= {labels.LATEST_START: until}
    job["spec"]["suspend"] = True
    return job


@asynccontextmanager
async def clean_hours_ahead(place: Place) -> AsyncIterator[None]:
    """A place where work waits."""
    await place.green_policy(mode="enforce")
    await place.offer_node("ZZ-RIGHTS")
    await place.publish("ZZ-RIGHTS", (500.0, 500.0, 500.0, 100.0, 100.0, 500.0))
    yield


async def is_planned(place: Place, name: str) -> bool:
    """Tell whether a Job carries a plan."""
    found = await place.get(f"{place.jobs}/{name}")
    return labels.PLANNED_START in found["metadata"]["annotations"]


SETTLED_S = 8.0  # after it began to lead, nothing more makes it plan all anew


async def counted(running: Running | Releaser, name: str, **of: str) -> float:
    """Return a sample of its metrics."""
    return running.metrics.registry.get_sample_value(f"greensched_operator_{name}", of) or 0.0


@pytest.mark.finding(28)
async def test_plans_that_were_refused_are_written_within_seconds_of_the_rights_return(
    place: Place, account: Account
) -> None:
    names = [f"train-{number}" for number in range(5)]

    async def are_planned(names: Sequence[str]) -> bool:
        return all([await is_planned(place, name) for name in names])

    async def are_refused() -> bool:
        return await counted(running, "api_failures_total", kind="plan") >= len(names)

    await account.may(JOBS, STATUS)
    async with clean_hours_ahead(place), account.place.controller() as running:
        await place.create(place.jobs, held_job(place, "first"))
        await place.until(partial(are_planned, ["first"]), "it leads and plans")
        await asyncio.sleep(SETTLED_S)
        await account.may(JOBS)  # and to write no plan
        for name in names:
            await place.create(place.jobs, held_job(place, name))
        await place.until(are_refused, "plans are refused")
        await account.may(JOBS, STATUS)
        given_at = time.monotonic()
        await place.until(partial(are_planned, names), "all are written")
    assert time.monotonic() - given_at < SECONDS


@pytest.mark.finding(26)
async def test_a_leader_that_is_refused_leaves_the_lease_and_the_next_sees(
    place: Place, account: Account, valve: Valve
) -> None:
    told: list[str] = []

    async def is_planned_by_it() -> bool:
        return await is_planned(place, "train")

    async def has_left() -> bool:
        told.append(running.ready())
        return running.task.done()

    await account.may(JOBS, STATUS)
    behind = replace(account.place.access, base_url=valve.url)
    async with clean_hours_ahead(place):
        await place.create(place.jobs, held_job(place, "train"))
        async with ApiClient(behind) as client:
            first = replace(account.place, api=client, access=behind)
            with pytest.raises(TaskEnded, match="refuses this replica a watch"):
                async with first.controller() as running:
                    await place.until(is_planned_by_it, "it sees Jobs")
                    await account.may(STATUS)
                    await asyncio.sleep(1.0)  # the API server learns of it
                    valve.cut()
                    await place.until(has_left, "it ends")
                    assert await holder(place) == ""
        assert any("no live watch of /apis/batch/v1/jobs" in each for each in told)
        await account.may(JOBS, STATUS)
        await place.api.delete(f"{place.jobs}/train")
        async with account.place.controller("second"):
            await place.create(place.jobs, held_job(place, "next"))
            await place.until(partial(is_planned, place, "next"), "the next one sees Jobs")


@pytest.mark.finding(26)
async def test_without_a_better_one_the_blind_leads_says_so_and_sees_with_the_rights(
    place: Place, account: Account
) -> None:
    async def is_told() -> bool:
        return "/apis/batch/v1/jobs" in running.ready()

    async def leads() -> bool:
        return await holder(place) == "first"

    async def sees() -> bool:
        return await is_planned(place, "train") and running.ready() == ""

    await account.may(STATUS)
    async with clean_hours_ahead(place):
        await place.create(place.jobs, held_job(place, "train"))
        async with account.place.controller() as running:
            await asyncio.sleep(3.0)
            assert not await leads()  # one with more rights would
            await place.until(leads, "nobody else did")
            await place.until(is_told, "readiness says what it does not see")
            aged = await counted(running, "watch_age_seconds", resource="jobs")
            assert aged > 1.0
            await account.may(JOBS, STATUS)
            await place.until(sees, "it sees with the rights")


@pytest.mark.finding(26)
async def test_a_releaser_that_is_refused_says_so_lives_on_and_sees_with_the_rights(
    place: Place, account: Account, valve: Valve
) -> None:
    async def is_ready() -> bool:
        return releaser.ready() == ""

    async def is_told() -> bool:
        return f"no live watch of {JOBS_PATH}" in releaser.ready() and "403" in releaser.ready()

    await account.may(JOBS)
    behind = replace(account.place.access, base_url=valve.url)
    async with ApiClient(behind) as client:
        own = replace(account.place, api=client, access=behind)
        async with own.releaser() as releaser:
            await place.until(is_ready, "it sees Jobs")
            await account.may()
            await asyncio.sleep(1.0)  # the API server learns of it
            valve.cut()
            await place.until(is_told, "readiness says what it does not see")
            assert releaser.alive() == ""
            registry = releaser.metrics.registry
            aged = registry.get_sample_value(WATCH_AGE, {"resource": "jobs"})
            assert aged is not None and aged > 1.0
            await account.may(JOBS)
            await place.until(is_ready, "it sees with the rights")


@pytest.mark.finding(26)
async def test_a_webhook_that_is_refused_stays_ready_and_its_metrics_tell(
    place: Place, account: Account, valve: Valve
) -> None:
    async def is_ready() -> bool:
        return webhook.ready() == ""

    async def is_told() -> bool:
        aged = webhook.metrics.registry.get_sample_value(WATCH_AGE, {"resource": "greenpolicies"})
        return aged is not None and aged > 1.0

    await account.may(JOBS)
    behind = replace(account.place.access, base_url=valve.url)
    async with ApiClient(behind) as client, place.releaser():
        own = replace(account.place, api=client, access=behind)
        async with own.webhook(has_heartbeat=False) as webhook:
            await place.until(is_ready, "it hears the releaser")
            assert not await is_told()
            await place.api.patch(f"{RBAC}/clusterroles/{account.name}", b'{"rules": []}')
            await asyncio.sleep(1.0)  # the API server learns of it
            valve.cut()
            await place.until(is_told, "it tells what it does not see")
            assert await is_ready()
            await account.may()


READ_ONLY = {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["list", "watch"]}
HEARD_S = BEATS_EVERY_S + 3.0  # by then somebody who gives signs of life was heard


@pytest.mark.finding(2)
@pytest.mark.parametrize(
    ("who", "rights"),
    [
        pytest.param("controller", [STATUS], id="a-leader-that-sees-no-jobs"),
        pytest.param("controller", [READ_ONLY, STATUS], id="a-leader-that-may-start-none"),
        pytest.param("releaser", [READ_ONLY], id="a-releaser-that-may-start-none"),
    ],
)
async def test_nothing_is_held_for_who_could_not_start_it(
    place: Place, account: Account, who: str, rights: list[dict[str, Any]]
) -> None:
    async def leads() -> bool:
        return who == "releaser" or await holder(place) == "first"

    async def is_heard() -> bool:
        return webhook.surroundings().is_releasable

    async def shows_it() -> bool:
        return await counted(running, "heartbeat") == 1.0

    await account.may(*rights)
    await place.green_policy(mode="enforce")
    beginning = getattr(account.place, who)()
    async with place.webhook(has_heartbeat=False) as webhook, beginning as running:
        await place.until(leads, "it leads")
        heard = [await is_heard()]
        until_s = time.monotonic() + HEARD_S
        while time.monotonic() < until_s:
            await asyncio.sleep(0.5)
            heard.append(await is_heard())
        assert not any(heard)
        assert not await shows_it()
        made = await place.create_job("train", deadline="6h")
        assert not made["spec"].get("suspend")
        await account.may(JOBS, STATUS)
        await place.until(is_heard, "it could start them now")
        await place.until(shows_it, "its own metric tells")


def extender_in(namespace: str, api: ApiClient, http: httpx.AsyncClient) -> Extender:
    settings = ExtenderSettings(
        listen_port=0, explain_port=0, pod_name="extender", pod_namespace=namespace, pod_uid="uid"
    )
    return Extender(settings, api, http, settings.clock)


def settings_of(settings: OperatorSettings, namespace: str, pod: str) -> OperatorSettings:
    """Return the settings of one of several processes, with ports of its own."""
    ports = {"health_port": free_port(), "ledger_port": free_port()}
    named = {"pod_name": pod, "pod_namespace": namespace, "pod_uid": f"uid-{pod}"}
    return settings.model_copy(update=named | ports)


async def events_by_pod(place: Place) -> dict[str, str]:
    found = (await place.get(f"/api/v1/namespaces/{place.own}/events"))["items"]
    return {each["involvedObject"]["name"]: each["message"] for each in found}


async def test_who_cannot_get_ready_says_so_in_log_readiness_and_an_event_within_30_s(
    place: Place, account: Account
) -> None:
    """A webhook without a certificate, the others without what they must see or take."""
    settings, api = account.place.settings, account.place.api
    await account.keep_only("events", "secrets", "configmaps")
    stop = asyncio.Event()

    of = partial(settings_of, settings, place.own)
    http = httpx.AsyncClient(trust_env=False)
    extender = extender_in(place.own, api, http)
    others = (
        WebhookProcess(of("webhook"), api, settings.clock),
        Releaser(of("releaser"), api, settings.clock),
        ControllerProcess(of("controller"), account.place.access, api, settings.clock),
    )
    running = [asyncio.create_task(each.run(stop)) for each in (extender, *others)]

    async def all_have_told() -> bool:
        return len(await events_by_pod(place)) == len(running)

    try:
        with capture_logs() as lines:
            await place.until(all_have_told, "each has told what it waits for")
        unready = [extender.watches.missing(), *(each.ready() for each in others)]
    finally:
        stop.set()
        await asyncio.gather(*running, return_exceptions=True)
        await http.aclose()
    events = await events_by_pod(place)
    assert LATE_AFTER_S < 30
    logged = [each for each in lines if each["event"] == "not ready"]
    assert [each["after_s"] for each in logged] == [LATE_AFTER_S] * len(running)
    assert all(any(each["reason"] in event for event in events.values()) for each in logged)
    assert all(unready)
    assert "first list of nodes" in events["extender"]
    assert "Secret" in events["webhook"]
    assert "/apis/batch/v1/jobs" in events["releaser"]
    assert "Lease" in events["controller"] and "403" in events["controller"]
