"""Our container images without Docker: built by buildah, run by runc as the chart runs them.

`building` makes them, `containers` runs one, `chart_pods` reads how the chart would.
Needs Linux, root and the Debian packages of `building.PACKAGES`; no image registry.
"""
