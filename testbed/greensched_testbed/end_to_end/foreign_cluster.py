"""A user's cluster, given by its kubeconfig and other environment variables."""

import os
import shutil
from pathlib import Path

from greensched_core.errors import BadInput
from greensched_testbed.binaries import control_plane_programs
from greensched_testbed.end_to_end.clusters import Capabilities, ClusterAccess
from greensched_testbed.end_to_end.release import installed
from greensched_testbed.errors import CommandFailed, NotReady

KUBECONFIG = "GREENSCHED_E2E_KUBECONFIG"
SHELL_IMAGE_VARIABLE = "GREENSCHED_E2E_SHELL_IMAGE"
EXTENDER_IMAGE = "GREENSCHED_E2E_EXTENDER_IMAGE"
OPERATOR_IMAGE = "GREENSCHED_E2E_OPERATOR_IMAGE"
_ANSWERS_WITHIN = "20s"


def foreign_cluster(home: Path) -> ClusterAccess:
    """Return the cluster of the variable KUBECONFIG, on which tests may install GreenSched.

    Raises BadInput if there is no kubeconfig, an image has no tag, the cluster does not answer, or
    it has GreenSched or remains of it: the tests would take them over and remove them.
    """
    kubeconfig = Path(os.environ[KUBECONFIG]).expanduser().absolute()
    if not kubeconfig.is_file():
        raise BadInput(f"{KUBECONFIG}: there is no file {kubeconfig}")
    can = Capabilities(
        kind=f"the cluster of {kubeconfig}",
        shell_image=os.environ.get(SHELL_IMAGE_VARIABLE, "busybox:1.37"),
        extender_image=_tagged(EXTENDER_IMAGE),
        operator_image=_tagged(OPERATOR_IMAGE),
        kubelet_metrics=True,
    )
    kubectl, helm = (_program(name) for name in ("kubectl", "helm"))
    cluster = ClusterAccess(kubeconfig, kubectl, helm, home, can, os.environ)
    if there := _installed(cluster):
        raise BadInput(
            f"{can.kind} has GreenSched already: {there}. The tests would take it over, start all"
            " that it holds and remove it. Name a cluster without it, or uninstall it first and"
            " remove what stays of it (docs/install.md)"
        )
    return cluster


def _installed(cluster: ClusterAccess) -> str:
    """Describe the parts of GreenSched that the cluster has; raise BadInput without an answer."""
    try:
        cluster.kubectl("version", f"--request-timeout={_ANSWERS_WITHIN}")
        return installed(cluster)
    except (CommandFailed, NotReady) as fault:
        raise BadInput(
            f"{cluster.can.kind} gave no answer that tests can use; check the kubeconfig, its login"
            f" and the network: {fault}"
        ) from fault


def _tagged(variable: str) -> str:
    """Return the image that a variable names, "" if it is empty."""
    image = os.environ.get(variable, "")
    # A registry's port is not a tag.
    if image and (":" not in image.rpartition("/")[2] or "@" in image):
        raise BadInput(f"{variable}: {image} has no tag, or a digest; name it as REPOSITORY:TAG")
    return image


def _program(name: str) -> Path:
    found = shutil.which(name)
    return Path(found) if found else control_plane_programs() / name
