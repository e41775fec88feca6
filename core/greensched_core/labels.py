"""All label, annotation and resource names that we read or write."""

GROUP = "greensched.io"
VERSION = "v1alpha1"
API = f"/apis/{GROUP}/{VERSION}"  # where the API server has our custom resources
SCHEDULER_NAME = "greensched"

# Workloads (Job, Pod, pod template, CronJob): annotations that a user writes.
DEADLINE = f"{GROUP}/deadline"
MAX_DELAY = f"{GROUP}/max-delay"
RUNTIME = f"{GROUP}/runtime"
WINDOW = f"{GROUP}/window"
CHECKPOINTABLE = f"{GROUP}/checkpointable"
POWER_PROFILE = f"{GROUP}/power-profile"
POLICY = f"{GROUP}/policy"
RUN_NOW = f"{GROUP}/run-now"
GANG = f"{GROUP}/gang"  # workloads with the same gang name start together
ASKED = frozenset(
    {DEADLINE, MAX_DELAY, RUNTIME, WINDOW, CHECKPOINTABLE, POWER_PROFILE, POLICY, RUN_NOW, GANG}
)

# Workloads: annotations that we write, and the scheduling gate of held pods.
LATEST_START = f"{GROUP}/latest-start"  # present while we hold the workload
LATEST_START_OF_010 = f"{GROUP}/hold-until"  # its name in 0.1.0; read until upgrades from 0.1 end
HELD_AT = f"{GROUP}/held-at"
HOLD_REASON = f"{GROUP}/hold-reason"
PLANNED_START = f"{GROUP}/planned-start"
START_PLANNED = f"{GROUP}/StartPlanned"  # condition type: the planned start, while held
RELEASED_AT = f"{GROUP}/released-at"
RELEASE_REASON = f"{GROUP}/release-reason"
DECISION = f"{GROUP}/decision"
PAUSED_AT = f"{GROUP}/paused-at"  # when it was last paused
WORK_DONE = f"{GROUP}/work-done"  # by then, in all run segments: a duration
PAUSES = f"{GROUP}/pauses"  # number of pauses so far
# On CronJobs: seconds of the last runs on a reference node, JSON; and the durations that 0.1
# wrote, which are not read.
RUNTIMES = f"{GROUP}/reference-runtimes"
DURATIONS_OF_010 = f"{GROUP}/runtimes"
WRITTEN = frozenset(
    {
        LATEST_START,
        LATEST_START_OF_010,
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

# Heartbeat Lease: the speeds of the slowest node for work without GPUs and with them, JSON.
SLOWEST_SPEEDS = f"{GROUP}/slowest-speeds"

# Pods: written by the chart.
EXPLAIN_PORT = f"{GROUP}/explain-port"  # annotation: the extender's explain port, if not 8889

# Nodes: written by an administrator.
GRID_ZONE = f"{GROUP}/grid-zone"
POWER_MODEL = f"{GROUP}/power-model"
CPU_MODEL = f"{GROUP}/cpu-model"
PUE = f"{GROUP}/pue"
POWER_CURVE_WATTS = f"{GROUP}/power-curve-watts"  # annotation
POWER_BUDGET_WATTS = f"{GROUP}/power-budget-watts"  # annotation

# Nodes: written by others.
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
TOPOLOGY_REGION = "topology.kubernetes.io/region"
TOPOLOGY_ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
GPU_PRODUCT = "nvidia.com/gpu.product"  # NVIDIA GPU feature discovery

# Resources.
CPU = "cpu"
MEMORY = "memory"
NVIDIA_GPU = "nvidia.com/gpu"

# Secrets: written by an administrator.
PROVIDER_SECRET_TYPE = f"{GROUP}/provider"  # a provider's key; other types are not read

GRID_SIGNALS = "gridsignals"
GREEN_POLICIES = "greenpolicies"
JOB_POWER_PROFILES = "jobpowerprofiles"
