"""What `helm install --wait` leaves running."""

from greensched_testbed.end_to_end.clusters import ClusterAccess
from greensched_testbed.end_to_end.release import DEPLOYMENTS, NAMESPACE, ChartRelease

CHECKLIST = [
    "ok      the extender answers at its Service",
    "ok      the service accounts have their rights",
    "ok      the cluster's GreenPolicy exists",
    "ok      the API server calls the webhook",
    "ok      the scheduler places a pod",
    "ok      a Job is held, and released",
]
# Prints its user, and for each place whether it may be written to; EROFS says "read-only".
WRITES = """
import errno, os
print(os.getuid())
for place in ("/x", "/opt/greensched/x"):
    try:
        with open(place, "w"):
            print("written")
    except OSError as fault:
        print(errno.errorcode[fault.errno])
"""


def test_all_is_ready_and_nothing_was_restarted(release: ChartRelease) -> None:
    for component in DEPLOYMENTS:
        for pod in release.pods(component):
            conditions = {each["type"]: each["status"] for each in pod["status"]["conditions"]}
            assert conditions["Ready"] == "True", pod["metadata"]["name"]
    restarted = {container: times for container, times in release.restarts().items() if times}
    assert not restarted


def test_no_container_runs_as_root_or_may_write_its_image(
    cluster: ClusterAccess, release: ChartRelease
) -> None:
    for component in ("extender", "controller", "webhook", "releaser"):
        for pod in release.pods(component):
            name = pod["metadata"]["name"]
            told = cluster.kubectl("exec", name, "-n", NAMESPACE, "--", "python", "-c", WRITES)
            assert told.split() == ["65532", "EROFS", "EROFS"], name


def test_its_logs_are_read_through_the_kubelet(
    cluster: ClusterAccess, release: ChartRelease
) -> None:
    for component in ("extender", "scheduler"):  # the operator has nothing to say yet
        name = release.pods(component)[0]["metadata"]["name"]
        assert cluster.kubectl("logs", name, "-n", NAMESPACE).strip(), name


def test_the_webhook_is_called_by_the_api_server(
    cluster: ClusterAccess, release: ChartRelease
) -> None:
    found = cluster.get("mutatingwebhookconfiguration", "greensched")["webhooks"]
    assert all(each["clientConfig"].get("caBundle") for each in found)


def test_helm_test_reads_as_a_checklist_and_leaves_nothing(
    cluster: ClusterAccess, release: ChartRelease
) -> None:
    told = cluster.helm("test", "greensched", "--namespace", NAMESPACE, "--logs")
    checklist = [line for line in told.splitlines() if line.startswith("ok      ")]
    assert [line.split(":")[0] for line in checklist] == CHECKLIST
    assert f"{len(CHECKLIST)} of {len(CHECKLIST)} checks passed" in told.splitlines()
    assert not cluster.has("pod", "greensched-check", NAMESPACE)
    own = "app.kubernetes.io/component=check"
    cluster.wait_until(lambda: not cluster.list("namespaces", NAMESPACE, own), "all is gone")
