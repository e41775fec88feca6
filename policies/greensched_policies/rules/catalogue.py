"""Every rule by the name that settings use; a new rule is one function and one line here."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from greensched_policies.costs.capping import CapColumns
from greensched_policies.costs.cost import Floats
from greensched_policies.costs.pausing import PauseColumns
from greensched_policies.costs.sleeping import SleepColumns
from greensched_policies.encoding.queue_columns import QueueColumns
from greensched_policies.encoding.slots import SlotColumns
from greensched_policies.rules.cap import cap_60, cap_frugal, cap_when_dirty, full_speed
from greensched_policies.rules.order import (
    f1,
    f2,
    f3,
    f4,
    first_come,
    longest_first,
    shortest_first,
    unicep,
    wfp3,
)
from greensched_policies.rules.pause import pause_freely, pause_if_worth, run_through, scale_freely
from greensched_policies.rules.sleep import (
    sleep_after_10m,
    sleep_at_break_even,
    sleep_at_once,
    stay_awake,
)
from greensched_policies.rules.when import (
    carbon_time,
    cheapest_window,
    clean_threshold,
    lowest_slot,
    lowest_window,
    planned_window,
    price_threshold,
    reject_all,
    reject_long,
    run_now,
)
from greensched_policies.rules.where import (
    bin_pack,
    carbon_threshold,
    fastest,
    first_fit,
    keids,
    kubernetes_default,
    least_carbon,
    least_cost,
    least_energy,
    spread,
    tetris,
    topsis,
    weighted_cost,
)

# (nodes [B,N,22], context [B,15]) -> relative cost [B,N], lower is better
WherePolicy = Callable[[npt.NDArray[np.float32], npt.NDArray[np.float32]], npt.NDArray[np.float32]]

WHERE_RULES: dict[str, WherePolicy] = {
    "bin-pack": bin_pack,
    "carbon-threshold": carbon_threshold,
    "fastest": fastest,
    "first-fit": first_fit,
    "keids": keids,
    "kubernetes-default": kubernetes_default,
    "least-carbon": least_carbon,
    "least-cost": least_cost,
    "least-energy": least_energy,
    "spread": spread,
    "tetris": tetris,
    "topsis": topsis,
    "weighted-cost": weighted_cost,
}

# Where rules that look at a run's cost, time and carbon on a node, but not at the room left there
# (ROOM_FEATURES): the simulator does not compute that for them.
BLIND_TO_ROOM = frozenset({
    "carbon-threshold", "fastest", "first-fit", "least-carbon", "least-cost", "least-energy",
    "topsis", "weighted-cost",
})  # fmt: skip

# candidate starts [B,S] -> cost [B,S], lower is better; of equal ones the earliest is taken. A
# start of infinite cost is never taken; if all costs are infinite, the workload is rejected.
WhenPolicy = Callable[[SlotColumns], Floats]

WHEN_RULES: dict[str, WhenPolicy] = {
    "carbon-time": carbon_time,
    "cheapest-window": cheapest_window,
    "clean-threshold": clean_threshold,
    "lowest-slot": lowest_slot,
    "lowest-window": lowest_window,
    "planned-window": planned_window,
    "price-threshold": price_threshold,
    "run-now": run_now,
}

# waiting jobs [B,Q] -> priority [B,Q], the least first; of equal ones the one whose start came due
# first
OrderPolicy = Callable[[QueueColumns], Floats]

ORDER_RULES: dict[str, OrderPolicy] = {
    "f1": f1,
    "f2": f2,
    "f3": f3,
    "f4": f4,
    "first-come": first_come,
    "longest-first": longest_first,
    "shortest-first": shortest_first,
    "wfp3": wfp3,
    "unicep": unicep,
}

# nodes [B,N] -> seconds [B,N] that each stays awake once it is empty; infinity: it never sleeps
SleepPolicy = Callable[[SleepColumns], Floats]

SLEEP_RULES: dict[str, SleepPolicy] = {
    "sleep-after-10m": sleep_after_10m,
    "sleep-at-break-even": sleep_at_break_even,
    "sleep-at-once": sleep_at_once,
    "stay-awake": stay_awake,
}

# power caps of nodes [B,L] -> cost [B,L], lower is better; of equal ones the highest power cap is
# taken
CapPolicy = Callable[[CapColumns], Floats]

CAP_RULES: dict[str, CapPolicy] = {
    "cap-60": cap_60,
    "cap-frugal": cap_frugal,
    "cap-when-dirty": cap_when_dirty,
    "full-speed": full_speed,
}

# workloads [B,N] -> what resuming costs [B,N], in slots of running; infinity: never suspended
PausePolicy = Callable[[PauseColumns], Floats]

PAUSE_RULES: dict[str, PausePolicy] = {
    "pause-freely": pause_freely,
    "pause-if-worth": pause_if_worth,
    "run-through": run_through,
    "scale-freely": scale_freely,  # also in SCALE_RULES
}

# Pause rules that also change the number of workers of elastic work: see `scaling`.
SCALE_RULES = frozenset({"scale-freely"})

# Deliberately bad, for tests and teaching: only the simulator accepts them, and only by name.
BAD_WHEN_RULES: dict[str, WhenPolicy] = {"reject-all": reject_all, "reject-long": reject_long}

# When rules that may reject a workload; all others give finite costs.
MAY_REJECT = frozenset({"reject-all", "reject-long"})
