"""Real nodes beside the control plane: kubelet, containerd and kube-proxy in their own namespaces.

They need root on Linux, but no container engine, image registry or separate machine. Imports
`controlplane.py` and the modules below it. Begin with `cluster.py`.
"""
