"""What a kubelet gives pods that our schedulers placed: probes, restarts, logs, limits, names."""

import signal
from typing import Any

from greensched_testbed.end_to_end.clusters import ClusterAccess
from greensched_testbed.end_to_end.work import pod, pod_template

SERVES = "mkdir -p /tmp/www && echo well > /tmp/www/healthz && exec httpd -f -p 8080 -h /tmp/www"


def probed(shell: str, script: str, path: str) -> dict[str, Any]:
    """Return a pod that is Ready, and is restarted, by a probe of its port 8080."""
    template = pod_template(shell, script)
    container = template["spec"]["containers"][0]
    container["readinessProbe"] = {"httpGet": {"path": path, "port": 8080}, "periodSeconds": 1}
    return pod("served", template)


def test_a_pod_is_ready_when_its_probe_is_answered_and_its_logs_are_read(
    cluster: ClusterAccess, users: str, shell: str
) -> None:
    cluster.apply(probed(shell, f"echo begun; {SERVES}", "/healthz"), namespace=users)
    cluster.kubectl("wait", "pod/served", "--for=condition=Ready", "--timeout=60s", "-n", users)
    assert cluster.kubectl("logs", "served", "-n", users).strip() == "begun"
    address = cluster.kubectl(
        *("exec", "served", "-n", users, "--", "wget", "-qO-", "http://127.0.0.1:8080/healthz")
    )
    assert address.strip() == "well"


def test_a_pod_whose_probe_fails_is_restarted(
    cluster: ClusterAccess, users: str, shell: str
) -> None:
    template = pod_template(shell, "sleep 300 & wait")
    template["spec"]["restartPolicy"] = "Always"
    container = template["spec"]["containers"][0]
    command = {"exec": {"command": ["/bin/sh", "-c", "exit 1"]}}
    container["livenessProbe"] = {**command, "periodSeconds": 1, "failureThreshold": 1}
    cluster.apply(pod("sick", template), namespace=users)

    def restarts() -> int:
        statuses = cluster.get("pod", "sick", users)["status"].get("containerStatuses", ())
        return sum(each["restartCount"] for each in statuses)

    cluster.wait_until(lambda: restarts() > 0, "the kubelet restarts it")


def test_a_pod_that_takes_more_memory_than_its_limit_is_killed(
    cluster: ClusterAccess, users: str, shell: str
) -> None:
    grows = "x=0123456789abcdef; while :; do x=$x$x; done"
    cluster.apply(pod("greedy", pod_template(shell, grows)), namespace=users)

    def end() -> dict[str, Any]:
        statuses = cluster.get("pod", "greedy", users)["status"].get("containerStatuses", ())
        ended = [each.get("state", {}).get("terminated", {}) for each in statuses]
        return ended[0] if ended else {}

    cluster.wait_until(lambda: bool(end()), "it ends")
    assert end()["exitCode"] == 128 + signal.SIGKILL
    # containerd may see the end before the kernel's word of memory, and then says "Error"
    # (containerd/containerd#12260).
    assert end()["reason"] in ("OOMKilled", "Error")


def test_services_have_names_and_the_extenders_is_known_in_the_cluster(
    cluster: ClusterAccess, users: str, shell: str
) -> None:
    name = "greensched-extender.greensched.svc.cluster.local"
    cluster.apply(pod("asks", pod_template(shell, f"nslookup {name}")), namespace=users)
    ended = "--for=jsonpath={.status.phase}=Succeeded"
    cluster.kubectl("wait", "pod/asks", ended, "--timeout=60s", "-n", users)
    service = cluster.get("service", "greensched-extender", "greensched")["spec"]["clusterIP"]
    assert service in cluster.kubectl("logs", "asks", "-n", users)
