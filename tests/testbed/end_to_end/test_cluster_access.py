"""What programs get of the user's environment on a cluster under test."""

from pathlib import Path

import pytest

from greensched_testbed.end_to_end.clusters import Capabilities, ClusterAccess

USERS = {
    "PATH": "/opt/cloud/bin:/usr/bin",
    "HOME": "/users/anna",
    "AWS_PROFILE": "research",
    "KUBECONFIG": "/users/anna/.kube/config",
    "HELM_KUBECONTEXT": "production",
}


def access(folder: Path, users_environment: dict[str, str] | None) -> ClusterAccess:
    kubectl, helm = folder / "kubectl", folder / "helm"
    can = Capabilities("a cluster")
    return ClusterAccess(folder / "kubeconfig", kubectl, helm, folder, can, users_environment)


def test_a_users_cluster_is_reached_with_the_login_plugins_of_its_user(tmp_path: Path) -> None:
    found = access(tmp_path, USERS).environment()
    for name in ("PATH", "HOME", "AWS_PROFILE"):
        assert found[name] == USERS[name]


@pytest.mark.parametrize("users", [USERS, None])
def test_no_setting_of_helm_or_kubectl_leads_to_another_cluster(
    tmp_path: Path, users: dict[str, str] | None
) -> None:
    found = access(tmp_path, users).environment()
    assert found["KUBECONFIG"] == str(tmp_path / "kubeconfig")
    helm = {name for name in found if name.startswith("HELM_")}
    assert helm == {"HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"}


def test_our_own_clusters_get_nothing_of_the_users_home(tmp_path: Path) -> None:
    assert access(tmp_path, None).environment()["HOME"] == str(tmp_path)
