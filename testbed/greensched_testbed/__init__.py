"""A real Kubernetes control plane on one machine, kwok nodes, and workload replay."""
