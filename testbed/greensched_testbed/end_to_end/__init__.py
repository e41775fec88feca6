"""The interface of end-to-end tests to a cluster: kubeconfig, kubectl, Helm and capabilities.

It is the same for real nodes, kind and any other cluster. Imports `images`, `real_nodes` and
`kueue.py`. Begin with `clusters.py`.
"""
