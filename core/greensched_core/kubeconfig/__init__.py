"""How a person reaches a cluster: the kubeconfig's files, its login plugins, and TLS.

Imports `errors.py`, `clock.py`, `quoting.py` and `signals/timestamps.py`. Begin with `login.py`.
"""
