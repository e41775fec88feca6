"""Every command of our images starts as the chart runs it.

As uid 65532 without a name or USER, on a root that cannot be written, without capabilities, within
the chart's memory, and without a network but for the API server. runc sets HOME=/ for such a uid.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from greensched_testbed.images.building import Image, ImageStore
    from greensched_testbed.images.containers import EnteredContainer
    from tests.images.conftest import Place, Start

pytestmark = [pytest.mark.image, pytest.mark.controlplane]

PATIENCE_S = 60.0  # for what takes a few seconds on an idle machine
# The user of the image's own process, and the USER and HOME that it was started with.
LOOK = """
import os, pathlib
lines = pathlib.Path("/proc/1/environ").read_text().split("\\0")
said = dict(line.split("=", 1) for line in lines if line)
print(os.stat("/proc/1").st_uid, said.get("USER"), said.get("HOME"))
"""
ASK = """
import sys, urllib.error, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=5).read().decode())
except urllib.error.HTTPError as refused:
    sys.exit(refused.read().decode())
"""


def until(claim: Callable[[], bool], container: EnteredContainer, what: str) -> None:
    """Wait until a claim holds; fail with the container's own words where it does not in time."""
    deadline = time.monotonic() + PATIENCE_S
    while not claim():
        assert container.status() is None, f"it ended:\n{container.log}"
        assert time.monotonic() < deadline, f"not {what} in time:\n{container.log}"
        time.sleep(0.2)


def is_ready(container: EnteredContainer, port: int) -> bool:
    asked = container.execute("python", "-c", ASK, f"http://127.0.0.1:{port}/readyz")
    return asked.returncode == 0


@pytest.fixture(scope="module")
def controller(start: Start) -> EnteredContainer:
    """The operator's controller; the webhook's certificate is made by it."""
    return start("operator", "greensched-controller")


@pytest.fixture(scope="module")
def others(controller: EnteredContainer, start: Start) -> dict[str, EnteredContainer]:
    """What runs beside the controller."""
    return {
        "webhook": start("operator", "greensched-webhook"),
        "releaser": start("operator", "greensched-releaser"),
        "extender": start("extender", "greensched-extender"),
    }


def test_the_controller_leads_and_goes_on(controller: EnteredContainer) -> None:
    asked = ("python", "-c", ASK, "http://127.0.0.1:8080/metrics")
    leads = "greensched_operator_leading 1.0"
    until(lambda: leads in controller.execute(*asked).stdout, controller, "leading")
    time.sleep(3.0)  # what ends a task ends it at once
    assert controller.status() is None, controller.log
    assert "ended" not in controller.log


@pytest.mark.parametrize(
    ("name", "port"), [("webhook", 8080), ("releaser", 8080), ("extender", 8888)]
)
def test_the_others_become_ready(others: dict[str, EnteredContainer], name: str, port: int) -> None:
    until(lambda: is_ready(others[name], port), others[name], "ready")
    assert "Traceback" not in others[name].log


@pytest.mark.parametrize("name", ["webhook", "extender"])
def test_an_image_has_the_compiled_kernel(others: dict[str, EnteredContainer], name: str) -> None:
    checked = others[name].execute("python", "-m", "greensched_policies.library.loading")
    assert (checked.returncode, checked.stderr) == (0, "")


def test_a_container_is_nobody_and_writes_nothing(controller: EnteredContainer) -> None:
    until(lambda: is_ready(controller, 8080), controller, "ready")
    assert controller.execute("python", "-c", LOOK).stdout.split() == ["65532", "None", "/"]
    for place in ("/opt/greensched/x", "/x"):
        wrote = controller.execute("python", "-c", f"open({place!r}, 'w')")
        assert "Read-only file system" in wrote.stderr


def status_at_its_end(container: EnteredContainer) -> int | None:
    """Return what it ends with by itself; None where it does not in time."""
    deadline = time.monotonic() + PATIENCE_S
    while container.status() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    return container.status()


def test_emergency_release_ends_with_what_it_did(place: Place) -> None:
    run = place.run_of_hook("greensched-emergency-release")
    with place.beside_api_server("operator", run) as container:
        assert status_at_its_end(container) == 0, container.log
        assert "greensched: " in container.log


def test_check_install_ends_with_its_checklist(place: Place) -> None:
    run = place.run_of_hook("greensched-check")
    told = {"GREENSCHED_CHECK_LIMIT_S": "6", "GREENSCHED_CHECK_POLICY_MODE": ""}
    told = {**run.environment, **told}  # the policy may be there by now, or not
    with place.beside_api_server("operator", replace(run, environment=told)) as container:
        # No node runs our pods, and no Service is reached: the accounts alone have what they need.
        assert status_at_its_end(container) == 1, container.log
        assert "ok      the service accounts have their rights: all " in container.log
        assert container.log.splitlines()[-1] == "1 of 5 checks passed"


@pytest.mark.parametrize(
    ("image", "deployment"),
    [
        ("operator", "greensched-controller"),
        ("operator", "greensched-webhook"),
        ("operator", "greensched-releaser"),
        ("extender", "greensched-extender"),
    ],
)
def test_without_an_api_server_it_says_so_and_waits(
    place: Place, image: str, deployment: str
) -> None:
    with place.alone(image, place.run_of(deployment)) as container:
        until(lambda: "All connection attempts failed" in container.log,
              container, "telling of the API server")  # fmt: skip
        container.terminate()
        assert status_at_its_end(container) == 0, container.log


@pytest.mark.parametrize(("component", "most_mb"), [("extender", 160), ("operator", 260)])
def test_an_image_adds_little_to_its_base(
    image_store: ImageStore, images: dict[str, Image], component: str, most_mb: float
) -> None:
    assert images[component].own_megabytes(image_store.base()) <= most_mb
