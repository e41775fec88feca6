"""Every label, annotation and resource name that we read or write."""

GROUP = "greensched.io"
VERSION = "v1alpha1"
SCHEDULER_NAME = "greensched"

# Pods: what a user writes.
RUNTIME = f"{GROUP}/runtime"

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

GRID_SIGNALS = "gridsignals"
