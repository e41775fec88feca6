"""kind on a machine without Docker and without an image registry: its engine and its node image."""
