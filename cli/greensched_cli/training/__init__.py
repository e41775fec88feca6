"""The verbs of training. Imports `greensched_cli.simulation`."""
