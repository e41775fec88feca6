"""API paths and field selectors by which Kubernetes' own objects are listed and watched."""

NODES = "/api/v1/nodes"
PODS = "/api/v1/pods"
JOBS = "/apis/batch/v1/jobs"
CRON_JOBS = "/apis/batch/v1/cronjobs"
# Webhook configurations; read and written by name.
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
# Pods that hold resources of a node. The API server leaves out all others, mostly finished jobs.
BOUND_AND_RUNNING = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
# Pods not bound to a node yet, including those that a scheduling gate holds.
UNBOUND = "spec.nodeName=,status.phase=Pending"


def config_maps_path(namespace: str) -> str:
    """Return the path of the ConfigMaps of a namespace."""
    return f"/api/v1/namespaces/{namespace}/configmaps"


def leases_path(namespace: str) -> str:
    """Return the path of the Leases of a namespace."""
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
