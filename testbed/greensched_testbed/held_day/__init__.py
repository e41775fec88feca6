"""Replays a world's jobs as real Jobs, pods, gangs and CronJob runs, on an accelerated clock.

Imports `replay.py`, `nodes.py`, `creating.py` and `operator_processes.py`. Begin with
`replaying.py`.
"""
