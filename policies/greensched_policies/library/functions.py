"""What the compiled library takes and returns; imports no compiler.

Each function takes the addresses of two arrays: one of whole numbers, among them the addresses of
all other arrays, and one of numbers. Here are the places of all. Results are written into arrays.
`kernel/entries.py` has the functions.
"""

import ctypes

from greensched_policies.rules.catalogue import WHEN_RULES

FUNCTIONS = ("plan_starts", "see_slots", "planned_slots", "see_nodes")

MOST_STARTS = 672  # of a workload: a week of quarter hours
WHEN_BY_NUMBER = tuple(WHEN_RULES)  # the library takes the place of a rule
# Why a start was chosen: see `planning.StartReason`, which has them in this order.
NO_CHOICE, NOW_IS_BEST, SAVES_TOO_LITTLE, CARBON_LIMIT, PLANNED, KEPT, NO_ZONE, NO_ROOM = range(8)
STAYS = 8  # no start was chosen: the earlier plan still has room

# Most functions begin with a forecast and a plan. Whole numbers: Z zones, T steps of the grid, S
# slots of the plan, and S or 0 of the plan for GPUs, and for memory. Arrays of a `GridTable` and a
# plan: [Z+1] starts; [8,T] times_s, since_s, and values, sums and gaps_s of carbon and price; [5,Z]
# per_step, known_until_s, capacity, gpu_capacity and memory_capacity; [Z,S] cores, gpus, memory.
(
    ZONES, STEPS, SLOTS, GPU_SLOTS, MEMORY_SLOTS, STARTS_AT, BY_STEP_AT, BY_ZONE_AT, CORES_AT,
    GPUS_AT, MEMORY_AT, SHARED,
) = range(12)  # fmt: skip
NOW_S, SLOT_S, BUSY_SHARE = range(3)  # numbers

# What plan_starts takes then: N workloads, M decisions, the address of an `Ask`; [ASKED,N] numbers;
# [2,N,Z] expected runtime in each zone, and watts there; [2,M] the workload and the place of its
# rule, in the order of the decisions. Results: [FOUND,N], and the plan has their room.
COUNT, DECISIONS, ASK_AT, ASKED_AT, IN_ZONES_AT, ORDER_AT, FOUND_AT = range(SHARED, SHARED + 7)
(
    LATEST_S, CPU_CORES, GPUS, BY_CARBON, BY_PRICE, PRICE_PER_G, AT_ARRIVAL_G, KEPT_S, LEAST_SAVING,
    LEAST_CHANGE, WAITS_FOR_ROOM, MEMORY_BYTES, STAYS_IN, STAYS_FROM_S, SEEKS_ROOM,
    SPARE_S, NODE_SHARE, MAY_MOVE, ASKED,
) = range(19)  # fmt: skip
NO_ZONE_YET = -1  # STAYS_IN of work that is planned anew
(
    PLACE, WHY, EXPECTED, ZONE, ZONE_NOW, ZONE_EXPECTED, SAVING, LACKS_ROOM, HAS_ROOM,
    CARBON, PRICE, CARBON_NOW, PRICE_NOW, SOONEST, FOUND,
) = range(15)  # fmt: skip
NO_RULE = -1
QUEUED = -2  # in place of a rule: it starts as soon as there is room, whatever that costs
# What asks a policy outside the library: workload, S starts, the address of the fields of
# SlotColumns, [8,S], and that of the result, [S] costs.
Ask = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)

# What see_slots takes then: S slots; [Z] runtimes. Results: [8,Z,S] the fields of SlotColumns, a
# row for each zone, and [2,Z,S] carbon and price, NaN where data is missing.
SLOTS_SEEN, RUNTIME_AT, COLUMNS_AT, RAW_AT = range(SHARED, SHARED + 4)
CORES, GPUS_REQUESTED, MEMORY_REQUESTED, CARBON_WEIGHT, COST_WEIGHT = range(3, 8)  # numbers

# What planned_slots takes: S slots, and whether work runs already; [S] the cost of each slot.
# Results: [S] whether it runs in each, and [1] their cost.
OF_COST, IS_RUNNING, COST_AT, CHOSEN_AT, TOTAL_AT = range(5)
RUNTIME_S, LENGTH_S, RESTART_S, RESTART, MOST_RESTARTS = range(5)  # numbers

# What see_nodes takes: R rows of a `NodeTable`, R or 0 of its GPU shares, N candidates, Z zones, C
# watts of power curves; the arrays of the table; [N] rows; [Z] carbon and [Z] price over the run,
# NaN where data is missing; [C] curves. Results: [16,N] and [8] features, float32; [2,N] watts and
# seconds of a run there, float32; [2] how many candidates lacked carbon, and how many a price.
(
    NODES, SHARES, CANDIDATES, NODE_ZONES, CURVE_WATTS, FIXED_AT, MOVING_AT, NODE_ZONE_AT,
    SHARES_AT, ROWS_AT, CARBON_AT, PRICE_AT, CURVES_AT, FEATURES_AT, CONTEXT_AT, COSTS_AT,
    LACKED_AT,
) = range(17)  # fmt: skip
(
    POD_CORES, POD_MEMORY, POD_GPUS, POD_RUNTIME_S, BY_COST, BY_GRAMS, BY_SPEED, UTILISATION_RATIO,
    GPU_RATIO, EMPTY_NODES_SLEEP, PLACING,
) = range(11)  # numbers  # fmt: skip
