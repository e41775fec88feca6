"""Our container images without Docker: built by buildah, run by runc as the chart runs them.

This needs Linux, root and the packages of `requirements.IMAGES`, but no image registry. Imports
`commands.py`, `processes.py` and `controlplane.py`. Begin with `building.py`; `containers.py` runs
one image, and `chart_pods.py` reads how the chart would run it.
"""
