"""Kueue's real controller, and the operator beside it with the accounts that the chart gives it."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from greensched_testbed.kueue import VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.deploy.conftest import Installation

pytestmark = [pytest.mark.helm, pytest.mark.controlplane, pytest.mark.kueue]

NAME = "installed"  # of whatever of Kueue's is not in a namespace


def of_kueue(kind: str, name: str, spec: dict[str, Any], namespace: str = "") -> dict[str, Any]:
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": f"kueue.x-k8s.io/{VERSION}", "kind": kind, "metadata": meta, "spec": spec}


@pytest.fixture
def queue(installation: Installation, kueue: None) -> Iterator[str]:
    """A LocalQueue of the users whose ClusterQueue names our check."""
    resources = [{"name": "cpu", "nominalQuota": "1"}]
    flavors = [{"name": NAME, "resources": resources}]
    cluster = {
        "namespaceSelector": {},
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": flavors}],
        "admissionChecksStrategy": {"admissionChecks": [{"name": NAME}]},
    }
    made = [
        of_kueue("ResourceFlavor", NAME, {}),
        of_kueue("AdmissionCheck", NAME, {"controllerName": "greensched.io/hold"}),
        of_kueue("ClusterQueue", NAME, cluster),
        of_kueue("LocalQueue", "team", {"clusterQueue": NAME}, installation.users),
    ]
    create(installation, {"apiVersion": "v1", "kind": "List", "items": made})
    yield "team"
    for kind in ("clusterqueue", "admissioncheck", "resourceflavor"):
        installation.kubectl("delete", kind, NAME, "--ignore-not-found", "--wait=false")


def create(installation: Installation, body: dict[str, Any]) -> None:
    result = installation.kubectl("create", "-f", "-", stdin=json.dumps(body))
    assert result.returncode == 0, result.stderr


def in_three_hours() -> str:
    """Return a window of the day that is not open yet."""
    opens, closes = (time.gmtime(time.time() + hours * 3600) for hours in (3, 5))
    return f"{time.strftime('%H:%M', opens)}-{time.strftime('%H:%M', closes)}"


def check_of_it(installation: Installation) -> dict[str, Any]:
    shown = installation.kubectl("get", "workloads", "-n", installation.users, "-o", "json")
    states = [
        each
        for item in json.loads(shown.stdout)["items"]
        for each in item.get("status", {}).get("admissionChecks", ())
    ]
    found: dict[str, Any] = states[0] if states else {}
    return found


def test_a_queued_job_waits_and_an_uninstall_starts_it_by_the_charts_accounts(
    installation: Installation, queue: str
) -> None:
    installation.upgrade("--set", "operator.kueue.enabled=true")
    running = [installation.start(name) for name in ("controller", "releaser")]
    job = json.loads(installation.job("train", window=in_three_hours()))
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": queue}
    job["spec"]["suspend"] = True  # as Kueue's webhook would
    create(installation, job)
    installation.wait_until(
        lambda: "start planned for" in check_of_it(installation).get("message", ""),
        "it waits, and says so",
    )
    assert check_of_it(installation)["state"] == "Pending"
    assert [line for each in running for line in installation.refusals(each)] == []
    installation.stop()
    ended = installation.run_to_its_end("emergency-release")
    assert ended.returncode == 0, ended.stderr
    assert "greensched: released 1 held workloads; none is still held\n" in ended.stdout
    assert check_of_it(installation)["state"] == "Ready"
    installation.wait_until(
        lambda: not installation.get("job", "train", installation.users)["spec"]["suspend"],
        "Kueue starts it",
    )
