"""Our images, built from this checkout, and a control plane with the chart."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from greensched_testbed.chart import chart_folder
from greensched_testbed.components import ControlPlaneOptions
from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.images.building import COMPONENTS, Image, ImageStore
from greensched_testbed.images.chart_pods import ChartPods
from greensched_testbed.images.containers import ContainerRun, EnteredContainer
from greensched_testbed.images.door import Door
from greensched_testbed.requirements import IMAGES, missing

NAMESPACE = "greensched"


@pytest.fixture(scope="session")
def image_store(repository: Path) -> ImageStore:
    """Return the store in which images are built and kept."""
    if lacks := missing(IMAGES):
        pytest.skip(f"building and running images needs {'; '.join(lacks)}")
    return ImageStore(repository)


@pytest.fixture(scope="session")
def images(image_store: ImageStore) -> dict[str, Image]:
    """Return each component's image."""
    return {component: image_store.built(component) for component in COMPONENTS}


@dataclass(frozen=True, slots=True)
class Place:
    """Runs containers with the chart's settings, and gives them access to an API server."""

    store: ImageStore
    images: dict[str, Image]
    pods: ChartPods
    folder: Path

    @property
    def api_port(self) -> int:
        """Return the API server's port."""
        return urlsplit(self.pods.plane.url).port or 443

    def run_of(self, deployment: str) -> ContainerRun:
        """Return how the chart runs a Deployment's container."""
        return self.pods.of_deployment(deployment, api_port=self.api_port)

    def run_of_hook(self, job: str) -> ContainerRun:
        """Return how Helm runs a hook of the chart."""
        return self.pods.of_hook(job, api_port=self.api_port)

    @contextmanager
    def alone(self, image: str, run: ContainerRun) -> Iterator[EnteredContainer]:
        """Run an image without any network."""
        with EnteredContainer(self.store, self.images[image], run, self.folder) as container:
            yield container

    @contextmanager
    def beside_api_server(self, image: str, run: ContainerRun) -> Iterator[EnteredContainer]:
        """Run an image that can reach only the API server."""
        with Door(self.api_port) as door:
            with self.alone(image, replace(run, network=door.network)) as container:
                yield container


@pytest.fixture(scope="module")
def place(
    image_store: ImageStore,
    images: dict[str, Image],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Place]:
    """Run a control plane with the chart installed; no node runs its pods."""
    folder = tmp_path_factory.mktemp("images")
    with ControlPlane(ControlPlaneOptions(kwok=False, scheduler=False)) as plane:
        plane.helm(
            "install", NAMESPACE, str(chart_folder()), "--namespace", NAMESPACE,
            "--create-namespace",
        )  # fmt: skip
        yield Place(image_store, images, ChartPods(plane, NAMESPACE, folder), folder)


Start = Callable[[str, str], EnteredContainer]


@pytest.fixture(scope="module")
def start(place: Place) -> Iterator[Start]:
    """Return a function that starts a Deployment's container; it ends with the module."""
    with ExitStack() as stack:

        def started(image: str, deployment: str) -> EnteredContainer:
            run = place.run_of(deployment)
            return stack.enter_context(place.beside_api_server(image, run))

        yield started
