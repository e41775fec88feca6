"""Rules that choose whether a running job may be suspended."""
