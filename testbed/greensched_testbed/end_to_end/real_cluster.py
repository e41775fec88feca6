"""Starts real nodes on this machine with our images, as a cluster under test."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from greensched_testbed.end_to_end.clusters import Capabilities, ClusterAccess, RealMeters
from greensched_testbed.images.building import ImageStore
from greensched_testbed.kueue import running_kueue
from greensched_testbed.real_nodes.cluster import RealCluster, image_folder
from greensched_testbed.real_nodes.faked_rapl import FakedRapl
from greensched_testbed.real_nodes.node_kinds import in_two_zones
from greensched_testbed.real_nodes.program_images import (
    PROMETHEUS_IMAGE,
    SCAPHANDRE_IMAGE,
    SHELL_IMAGE,
    archive,
    prometheus_image,
    scaphandre_image,
)

_KEPT_S = 86_400.0  # since last use; the last release and other checkouts have their own archives


def image_archives(checkout: Path) -> dict[str, Path]:
    """Return our image archives by name, built from a checkout; raises BuildFailed."""
    store, folder = ImageStore(checkout), image_folder()
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for component in ("extender", "operator"):
        image = store.built(component)
        archive = folder / f"{image.name.rpartition('/')[2].replace(':', '-')}.tar"
        if not archive.exists():
            for other in folder.glob(f"greensched-{component}-*.tar"):
                if time.time() - other.stat().st_mtime > _KEPT_S:
                    other.unlink()
            store.save(image, archive)
        archive.touch()
        found[image.name] = archive
    return found


@contextmanager
def real_cluster(checkout: Path, home: Path) -> Iterator[ClusterAccess]:
    """Start two nodes in two grid zones, and remove all traces of them afterwards.

    Raises CannotRunNodes or BuildFailed if the machine lacks a requirement.
    """
    archives = image_archives(checkout)
    extender, operator = archives
    with RealCluster(in_two_zones(2)) as cluster:
        cluster.load_images(archives.values())
        programs = cluster.plane.programs
        can = Capabilities(
            kind="real nodes",
            shell_image=SHELL_IMAGE,
            extender_image=extender,
            operator_image=operator,
            kubelet_metrics=True,
            restart_node=cluster.restart_node,
            count_watts=partial(_count_watts, cluster),
            load_images=cluster.load_images,
            run_kueue=partial(running_kueue, cluster.plane),
        )
        kubeconfig = cluster.plane.kubeconfig
        yield ClusterAccess(kubeconfig, programs / "kubectl", programs / "helm", home, can)


def meter_archives() -> list[Path]:
    """Return the archives of Scaphandre and Prometheus; build them on first use.

    Raises BuildFailed if they cannot be built.
    """
    return [archive(each, image_folder()) for each in (scaphandre_image(), prometheus_image())]


@contextmanager
def _count_watts(cluster: RealCluster, watts: Mapping[str, float]) -> Iterator[RealMeters]:
    cluster.load_images(meter_archives())
    with FakedRapl(cluster.nodes, watts) as counting:
        yield RealMeters(SCAPHANDRE_IMAGE, PROMETHEUS_IMAGE, counting.watts)
