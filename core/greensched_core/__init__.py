"""Code that all components share: units, clock, state, signals, settings, API access.

From the bottom up: plain helpers such as `units.py` and `labels.py`, then `signals` and `power`,
`state.py`, `kubeconfig`, access to the Kubernetes API (`kubernetes_api.py`, `watching.py`,
`serving.py`) and `metering`. pyproject.toml lists the layers. Begin with `state.py`.
"""
