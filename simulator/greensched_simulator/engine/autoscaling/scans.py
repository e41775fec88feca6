"""A scan of the node autoscaler: it starts nodes for pending work, or else removes unneeded ones.

Cluster Autoscaler scans every 10 s (--scan-interval). A scan at which nothing can have changed is
left out.
"""

import numpy as np

from greensched_policies.compiling.compiled import fast, inlined
from greensched_simulator.engine.autoscaling.scaling_down import next_removal_s, remove_unneeded
from greensched_simulator.engine.autoscaling.scaling_up import scale_up
from greensched_simulator.engine.run import Run
from greensched_simulator.engine.state.autoscaler import (
    LAST_SCAN_S,
    NEXT_SCAN_S,
    SCAN_INTERVAL_S,
)


@fast
def scan(now_s: float, run: Run) -> None:
    """Start nodes for pending work; if none is started, remove nodes that nothing needs.

    RunOnce of Cluster Autoscaler's core/static_autoscaler.go does either, too, and removes nothing
    while pending work fits on nodes that are up or start.
    """
    times_s = run.autoscaler.times_s
    times_s[LAST_SCAN_S], times_s[NEXT_SCAN_S] = now_s, now_s + SCAN_INTERVAL_S
    has_started, has_room = scale_up(now_s, run)
    if has_started:
        return
    remove_unneeded(now_s, has_room, run)
    times_s[NEXT_SCAN_S] = next_removal_s(now_s, has_room, run.autoscaler, run.cluster)


@inlined
def next_scan_s(run: Run) -> float:
    """Return when the node autoscaler scans next; infinity if nothing is autoscaled."""
    return float(run.autoscaler.times_s[NEXT_SCAN_S])


@inlined
def expect_scan(now_s: float, run: Run) -> None:
    """Let the next scan look at what happens now; scans that would see no change are left out."""
    times_s = run.autoscaler.times_s
    if run.autoscaler.nodes.shape[1] > 0:
        next_s = np.ceil(now_s / SCAN_INTERVAL_S) * SCAN_INTERVAL_S
        next_s = max(next_s, times_s[LAST_SCAN_S] + SCAN_INTERVAL_S)
        times_s[NEXT_SCAN_S] = min(times_s[NEXT_SCAN_S], next_s)
