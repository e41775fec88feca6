"""A cluster on a virtual clock: the same decisions as in service, and honest bills."""
