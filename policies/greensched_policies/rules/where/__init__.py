"""Rules that choose on which node a pod runs."""
