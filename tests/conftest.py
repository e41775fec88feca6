"""Fixtures shared by every component's tests: one real control plane for the whole run."""

import re
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from greensched_core.kubernetes_api import ApiAccess, ApiClient
from greensched_testbed.controlplane import ControlPlane


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """A control plane with kwok and a default scheduler, built on first use."""
    with ControlPlane() as running:
        yield running


@pytest.fixture
def api_access(control_plane: ControlPlane) -> ApiAccess:
    return control_plane.access


@pytest_asyncio.fixture
async def api(api_access: ApiAccess) -> AsyncIterator[ApiClient]:
    async with ApiClient(api_access) as client:
        yield client


@pytest.fixture
def namespace(control_plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of this test's own, with its default service account."""
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:40].strip("-")
    name = f"{words}-{uuid.uuid4().hex[:6]}"
    control_plane.create_namespace(name)
    yield name
    control_plane.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return Path(__file__).parent.parent


SERVER_MARKERS = ("controlplane", "helm", "prometheus")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what starts the control plane, and run unit tests first: they fail soonest."""
    for item in items:
        if "control_plane" in getattr(item, "fixturenames", ()):
            item.add_marker("controlplane")
    items.sort(key=lambda item: any(item.get_closest_marker(name) for name in SERVER_MARKERS))
