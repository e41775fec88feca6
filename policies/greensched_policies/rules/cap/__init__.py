"""Rules that choose a power cap for each node."""
