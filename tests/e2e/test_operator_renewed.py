"""Held work outlives what an administrator does to a release: upgrades, renewed certificates."""

from base64 import b64decode

from greensched_testbed.end_to_end.clusters import ClusterAccess
from greensched_testbed.end_to_end.release import NAMESPACE, ChartRelease
from greensched_testbed.end_to_end.work import job, pod_template

PLANNED = "planned-start"
SECRET = "greensched-webhook"


def hold(cluster: ClusterAccess, shell: str, users: str) -> str:
    """Create a Job that waits, and return its planned start."""
    held = job("train", pod_template(shell), deadline="6h", runtime="10m")
    cluster.apply(held, namespace=users)
    cluster.wait_until(lambda: PLANNED in cluster.said("job", "train", users), "it is planned")
    return cluster.said("job", "train", users)[PLANNED]


def test_an_upgrade_that_rolls_all_pods_starts_nothing(
    cluster: ClusterAccess, release: ChartRelease, users: str, shell: str
) -> None:
    planned = hold(cluster, shell, users)
    before = names(release)
    release.upgrade("operator.settings.replanEveryS=240")
    cluster.wait_until(lambda: not before & names(release), "all were replaced")
    assert cluster.is_held("train", users)
    assert cluster.said("job", "train", users)[PLANNED] == planned


def test_the_webhook_is_trusted_again_after_its_certificate_was_deleted(
    cluster: ClusterAccess, release: ChartRelease, users: str, shell: str
) -> None:
    old = cluster.get("secret", SECRET, NAMESPACE)["metadata"]["uid"]
    cluster.kubectl("delete", "secret", SECRET, "--namespace", NAMESPACE)
    cluster.wait_until(lambda: has_another(cluster, old), "there is a new certificate", 120.0)
    tries = iter(range(1000))

    def is_held() -> bool:
        name = f"train-{next(tries)}"
        cluster.apply(job(name, pod_template(shell), deadline="6h"), namespace=users)
        return cluster.is_held(name, users)

    cluster.wait_until(is_held, "new work is held", 120.0)
    trusted = cluster.get("mutatingwebhookconfiguration", "greensched")["webhooks"]
    served = b64decode(cluster.get("secret", SECRET, NAMESPACE)["data"]["tls.crt"])
    assert all(served in b64decode(each["clientConfig"]["caBundle"]) for each in trusted)


def names(release: ChartRelease) -> set[str]:
    """Return the names of the controller's pods, those that are ending too."""
    return {each["metadata"]["name"] for each in release.pods("controller")}


def has_another(cluster: ClusterAccess, old: str) -> bool:
    """Say whether there is a Secret of the webhook's certificate, and not the old one."""
    if not cluster.has("secret", SECRET, NAMESPACE):
        return False
    return bool(cluster.get("secret", SECRET, NAMESPACE)["metadata"]["uid"] != old)
