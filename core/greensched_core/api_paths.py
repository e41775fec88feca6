"""What is listed and watched of Kubernetes' own kinds, and by which field selectors."""

NODES = "/api/v1/nodes"
PODS = "/api/v1/pods"
JOBS = "/apis/batch/v1/jobs"
CRON_JOBS = "/apis/batch/v1/cronjobs"
# Of webhooks; read and written by name.
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
# Pods that hold resources of a node; the API server leaves out the others, old jobs above all.
BOUND_AND_RUNNING = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
# Pods that no node has yet; those that a gate holds are among them.
UNBOUND = "spec.nodeName=,status.phase=Pending"


def leases_path(namespace: str) -> str:
    """Return where the Leases of a namespace are."""
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
