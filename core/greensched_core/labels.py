"""Every label, annotation and resource name that we read or write."""

GROUP = "greensched.io"
VERSION = "v1alpha1"
SCHEDULER_NAME = "greensched"

# Workloads (Job, Pod, pod template, CronJob): what a user writes, as annotations.
DEADLINE = f"{GROUP}/deadline"
MAX_DELAY = f"{GROUP}/max-delay"
RUNTIME = f"{GROUP}/runtime"
WINDOW = f"{GROUP}/window"
CHECKPOINTABLE = f"{GROUP}/checkpointable"
POWER_PROFILE = f"{GROUP}/power-profile"
POLICY = f"{GROUP}/policy"
RUN_NOW = f"{GROUP}/run-now"
GANG = f"{GROUP}/gang"  # what has one name of it is started together
ASKED = frozenset(
    {DEADLINE, MAX_DELAY, RUNTIME, WINDOW, CHECKPOINTABLE, POWER_PROFILE, POLICY, RUN_NOW, GANG}
)

# Workloads: what we write, as annotations, and the gate of held pods.
LATEST_START = f"{GROUP}/latest-start"  # it is there while we hold the workload
HOLD_UNTIL = f"{GROUP}/hold-until"  # what 0.1.0 wrote for it; read until no 0.1 is upgraded from
HELD_AT = f"{GROUP}/held-at"
HOLD_REASON = f"{GROUP}/hold-reason"
PLANNED_START = f"{GROUP}/planned-start"
START_PLANNED = f"{GROUP}/StartPlanned"  # type of a condition: the same, until the wait is over
RELEASED_AT = f"{GROUP}/released-at"
RELEASE_REASON = f"{GROUP}/release-reason"
DECISION = f"{GROUP}/decision"
PAUSED_AT = f"{GROUP}/paused-at"  # when it was last suspended to be resumed
WORK_DONE = f"{GROUP}/work-done"  # until then, in all its run segments: a duration
PAUSES = f"{GROUP}/pauses"  # how many there were
RUNTIMES = f"{GROUP}/runtimes"  # on CronJobs: seconds that the last runs took, JSON
WRITTEN = frozenset(
    {
        LATEST_START,
        HOLD_UNTIL,
        HELD_AT,
        HOLD_REASON,
        PLANNED_START,
        RELEASED_AT,
        RELEASE_REASON,
        DECISION,
    }
    | {PAUSED_AT, WORK_DONE, PAUSES}
)
GATE = f"{GROUP}/hold"

# Pods: what the chart writes.
EXPLAIN_PORT = f"{GROUP}/explain-port"  # annotation: where an extender tells why, if not on 8889

# Nodes: what an administrator writes.
GRID_ZONE = f"{GROUP}/grid-zone"
POWER_MODEL = f"{GROUP}/power-model"
CPU_MODEL = f"{GROUP}/cpu-model"
PUE = f"{GROUP}/pue"
POWER_CURVE_WATTS = f"{GROUP}/power-curve-watts"  # annotation
POWER_BUDGET_WATTS = f"{GROUP}/power-budget-watts"  # annotation

# Nodes: what others write.
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
TOPOLOGY_REGION = "topology.kubernetes.io/region"
TOPOLOGY_ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
GPU_PRODUCT = "nvidia.com/gpu.product"  # NVIDIA GPU feature discovery

# Resources.
CPU = "cpu"
MEMORY = "memory"
NVIDIA_GPU = "nvidia.com/gpu"

# Secrets: what an administrator writes.
PROVIDER_SECRET_TYPE = f"{GROUP}/provider"  # a grid signal provider's key; no other type is read

GRID_SIGNALS = "gridsignals"
GREEN_POLICIES = "greenpolicies"
JOB_POWER_PROFILES = "jobpowerprofiles"
