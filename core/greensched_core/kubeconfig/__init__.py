"""Access of a user to a cluster: kubeconfig files, login plugins, and TLS.

Imports `errors.py`, `clock.py`, `quoting.py` and `signals/timestamps.py`. Begin with `login.py`.
"""
