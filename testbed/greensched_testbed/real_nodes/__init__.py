"""Real nodes beside the control plane: kubelet, containerd and kube-proxy in own namespaces.

No container engine, no image registry and no machine of its own is needed, only root on Linux.
"""
