"""The operator as the chart installs it, run by us with the accounts and settings of the chart."""

import json
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from greensched_core.signals.grid import GridSlot, ZoneForecast, to_status
from greensched_testbed.ports import free_port

if TYPE_CHECKING:
    from tests.deploy.conftest import Installation

pytestmark = [pytest.mark.helm, pytest.mark.controlplane]

RELEASE = "greensched"
PATIENCE_S = 60.0  # for what takes a second or two on an idle machine


def said(installation: "Installation", name: str) -> dict[str, str]:
    """Return the annotations of a Job of users."""
    found = installation.get("job", name, installation.users)["metadata"]
    annotations: dict[str, str] = found.get("annotations", {})
    return annotations


def is_held(installation: "Installation", name: str) -> bool:
    found = installation.get("job", name, installation.users)
    return found["spec"].get("suspend") is True


def is_held_when_created(installation: "Installation", name: str) -> bool:
    """Create a Job anew that may wait, and tell whether it is held."""
    installation.kubectl("delete", "job", name, "-n", installation.users, "--ignore-not-found")
    made = installation.kubectl("create", "-f", "-", stdin=installation.job(name, deadline="6h"))
    assert made.returncode == 0, made.stderr
    return is_held(installation, name)


@pytest.mark.usefixtures("grid")
def test_a_job_is_held_planned_and_released_by_the_charts_accounts(
    installation: "Installation",
) -> None:
    running = [installation.start(name) for name in ("controller", "webhook")]
    until = installation.wait_until
    until(lambda: is_held_when_created(installation, "train"), "a Job is held")
    until(
        lambda: "greensched.io/planned-start" in said(installation, "train"),
        "its start is planned",
    )
    told = ("get", "events", "-n", installation.users, "--field-selector", "reason=Held")
    until(lambda: "train" in installation.kubectl(*told).stdout, "an event tells")
    note = ("annotate", "job", "train", "-n", installation.users, "greensched.io/run-now=true")
    assert installation.kubectl(*note).returncode == 0
    until(lambda: not is_held(installation, "train"), "it is started")
    assert said(installation, "train")["greensched.io/release-reason"] == "run-now"
    assert [line for each in running for line in installation.refusals(each)] == []


def test_the_releaser_starts_what_is_past_with_the_charts_account(
    installation: "Installation",
) -> None:
    running = installation.start("releaser")
    late = json.loads(installation.job("late", latest_start="2026-01-01T00:00:00Z"))
    late["spec"]["suspend"] = True
    made = installation.kubectl("create", "-f", "-", stdin=json.dumps(late))
    assert made.returncode == 0, made.stderr
    installation.wait_until(lambda: not is_held(installation, "late"), "it is started")
    assert said(installation, "late")["greensched.io/release-reason"] == "releaser"
    assert installation.refusals(running) == []


@pytest.fixture
def grid(installation: "Installation") -> Iterator[None]:
    """A node in a zone whose power is clean in three hours."""
    kubectl = installation.kubectl
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "inst", "labels": {"greensched.io/grid-zone": "ZZ-INST"}},
        "status": {
            "capacity": {"cpu": "16", "memory": "64Gi", "pods": "100"},
            "allocatable": {"cpu": "16", "memory": "64Gi", "pods": "100"},
            "conditions": [{"type": "Ready", "status": "True", "reason": "Test"}],
        },
    }
    assert kubectl("create", "-f", "-", stdin=json.dumps(node)).returncode == 0
    made = {"apiVersion": "greensched.io/v1alpha1", "kind": "GridSignal"}
    body = {**made, "metadata": {"name": "zz-inst"}, "spec": {"zone": "ZZ-INST"}}
    kubectl("create", "-f", "-", stdin=json.dumps(body))
    patch = json.dumps({"status": forecast()})
    told = ("patch", "gridsignal", "zz-inst", "--subresource=status", "--type=merge", "-p", patch)
    assert kubectl(*told).returncode == 0
    yield
    kubectl("delete", "node/inst", "gridsignal/zz-inst")


def forecast() -> dict[str, Any]:
    """Return the status of a grid that is dirty now and clean in three hours."""
    now_s = time.time() // 900 * 900
    grams = (500.0, 500.0, 500.0, 50.0, 50.0, 500.0)
    slots = tuple(GridSlot(now_s + 3600.0 * hour, each, None) for hour, each in enumerate(grams))
    end_s = now_s + 3600.0 * len(slots)
    told = ZoneForecast("ZZ-INST", "", time.time(), "test", slots[0], slots, end_s)
    return dict(to_status(told))


def test_an_upgrade_keeps_what_the_api_server_trusts(installation: "Installation") -> None:
    installation.start("controller")
    installation.start("webhook")
    trusted = installation.ca_bundles()
    assert len(trusted) == 2
    assert all(trusted)
    installation.upgrade()
    installation.upgrade("--set", "operator.webhook.excludedNamespaces={payments}")
    assert installation.ca_bundles() == trusted


def test_the_first_policy_is_the_charts_from_the_first_upgrade_on(
    installation: "Installation",
) -> None:
    running = installation.start("controller")

    def mode() -> str:
        shown = installation.kubectl(
            *[
                "get",
                "greenpolicy",
                "default",
                "-n",
                installation.namespace,
                "-o",
                "jsonpath={.spec.mode}",
            ]
        )
        return shown.stdout

    running.wait_until(lambda: mode() == "enforce", "the default GreenPolicy", PATIENCE_S)
    installation.upgrade("--set", "policy.mode=shadow")
    assert mode() == "shadow"
    helm = installation.helm(
        "uninstall", RELEASE, "--namespace", installation.namespace, "--no-hooks"
    )
    assert helm.returncode == 0, helm.stderr
    assert mode() == "shadow", "it is a user's word, and stays"
    installation.upgrade()
    assert mode() == "enforce"


def test_only_work_that_asks_is_sent(installation: "Installation") -> None:
    installation.start("controller")
    port = free_port()
    running = installation.start("webhook", port)

    def reviews() -> float:
        text = httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False).text
        lines = [line for line in text.splitlines() if line.startswith("greensched_webhook_rev")]
        return sum(float(line.rpartition(" ")[2]) for line in lines)

    def sent(scheduler: str, **said: str) -> bool:
        before = reviews()
        body = installation.job("probe", scheduler, **said)
        made = installation.kubectl("create", "--dry-run=server", "-f", "-", stdin=body)
        assert made.returncode == 0, made.stderr
        return reviews() > before

    running.wait_until(lambda: sent("greensched"), "the API server calls it", PATIENCE_S)
    assert sent("default-scheduler", deadline="6h"), "asks to wait, and forgot to opt in"
    assert not sent("default-scheduler", runtime="1h"), "is not ours"
