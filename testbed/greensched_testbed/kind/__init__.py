"""kind on a machine without Docker and image registry: an engine and a node image."""
