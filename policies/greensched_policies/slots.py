"""The start times that a `when` policy chooses among, for one workload or many."""

from typing import NamedTuple

from greensched_policies.cost import Floats


class SlotColumns(NamedTuple):
    """The candidate starts of B workloads, [B,S], the first of each is now; finite values only.

    Where several zones could take the workload, the grid is that of the zone with the least
    weighted cost over the run. Where a signal has no data at all, its columns are 1 throughout.
    """

    wait_s: Floats  # from now until the start
    carbon_at_start: Floats  # g/kWh
    carbon_over_run: Floats  # g/kWh, mean over the expected run
    price_at_start: Floats  # per MWh
    price_over_run: Floats  # per MWh, mean over the expected run
    weighted_over_run: Floats  # money and carbon over the run, relative, weighted; lower is better
