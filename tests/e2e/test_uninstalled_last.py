"""An uninstall starts what is held, and leaves no workload of ours."""

from greensched_testbed.end_to_end.clusters import ClusterAccess
from greensched_testbed.end_to_end.release import NAMESPACE, uninstall
from greensched_testbed.end_to_end.work import job, pod_template


def test_held_work_starts_and_nothing_of_ours_runs_on(
    cluster: ClusterAccess, users: str, shell: str
) -> None:
    names: list[str] = []

    def are_three_held() -> bool:  # while the webhook is away, work is admitted unheld
        names.append(f"held-{len(names)}")
        body = job(names[-1], pod_template(shell), deadline="6h", runtime="10m")
        cluster.apply(body, namespace=users)
        return sum(cluster.is_held(name, users) for name in names) >= 3

    cluster.wait_until(are_three_held, "three Jobs are held")
    told = uninstall(cluster)
    assert not any(cluster.is_held(name, users) for name in names), told
    ours = "app.kubernetes.io/part-of=greensched"
    cluster.wait_until(lambda: not cluster.list("pods", NAMESPACE, ours), "our pods are gone")
    assert not cluster.has("mutatingwebhookconfiguration", "greensched")
