"""Our container images without Docker: built by buildah, run by runc as the chart runs them.

`building` builds them, `containers` runs one, `chart_pods` reads how the chart would run it.
This needs Linux, root and the packages of `requirements.IMAGES`, but no image registry.
"""
