"""What end-to-end tests know of a cluster: a kubeconfig, kubectl, Helm, and what the cluster can.

Real nodes, kind and any other cluster look the same from here.
"""
