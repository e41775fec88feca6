"""Real nodes of this machine with our images on them, as a cluster under test."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from greensched_testbed.end_to_end.clusters import Capabilities, Cluster
from greensched_testbed.images.building import ImageStore
from greensched_testbed.real_nodes.cluster import RealCluster, image_folder
from greensched_testbed.real_nodes.node_kinds import in_two_zones
from greensched_testbed.real_nodes.program_images import SHELL_IMAGE


def image_archives(checkout: Path) -> dict[str, Path]:
    """Return our images' names and archives, built from a checkout; raises BuildFailed."""
    store, folder = ImageStore(checkout), image_folder()
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for component in ("extender", "operator"):
        image = store.built(component)
        archive = folder / f"{image.name.rpartition('/')[2].replace(':', '-')}.tar"
        if not archive.exists():
            for older in folder.glob(f"greensched-{component}-*.tar"):
                older.unlink()
            store.save(image, archive)
        found[image.name] = archive
    return found


@contextmanager
def real_cluster(checkout: Path, home: Path) -> Iterator[Cluster]:
    """Start two nodes in two grid zones and remove every trace of them afterwards.

    Raises CannotRunNodes or BuildFailed where the machine lacks something.
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
        )
        kubeconfig = cluster.plane.kubeconfig
        yield Cluster(kubeconfig, programs / "kubectl", programs / "helm", home, can)
