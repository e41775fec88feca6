"""What the compiled library takes and returns; imports no compiler.

Each function takes the addresses of two arrays: one of whole numbers, among them the addresses of
all other arrays, and one of numbers. Here are the places of all. Results are written into arrays.
`kernel/entries.py` has the functions.
"""

import ctypes

from greensched_policies.rules.catalogue import WHEN_RULES

FUNCTIONS = (
    "plan_starts", "see_slots", "choose_slots", "see_nodes", "spread_scores", "hash_names",
    "find_rows", "write_scores", "rate_candidates", "see_starts", "see_power_caps",
)  # fmt: skip
# The library has these twice, where that makes them faster: for every processor of its kind, and
# under another name, for a newer one.
FASTER_WHEN_NEWER = ("rate_candidates",)

MOST_STARTS = 672  # of a workload: a week of quarter hours
WHEN_BY_NUMBER = tuple(WHEN_RULES)  # the library takes the place of a rule
# Why a start was chosen: see `planning.StartReason`, which has them in this order.
(
    NO_CHOICE, NOW_IS_BEST, SAVES_TOO_LITTLE, CARBON_LIMIT, PLANNED, KEPT, NO_ZONE, NO_ROOM,
    NOT_BEFORE, STAYS,
) = range(10)  # fmt: skip
# The last one: no start was chosen, as the earlier plan still has room.

# Most functions begin with a forecast and a plan. Whole numbers: Z zones, T steps of the grid, S
# slots of the plan, and S or 0 of the plan for GPUs, and for memory. Arrays of a `GridTable` and a
# plan: [Z+1] starts; [8,T] times_s, since_s, and values, sums and gaps_s of carbon and price; [5,Z]
# per_step, known_until_s, capacity, gpu_capacity and memory_capacity; [Z,S] cores, gpus, memory;
# [2,Z,MERIT_STEPS] merit.
(
    ZONES, STEPS, SLOTS, GPU_SLOTS, MEMORY_SLOTS, STARTS_AT, BY_STEP_AT, BY_ZONE_AT, CORES_AT,
    GPUS_AT, MEMORY_AT, MERIT_AT, SHARED,
) = range(13)  # fmt: skip
NOW_S, SLOT_S, BUSY_SHARE = range(3)  # numbers

# What plan_starts takes then: N workloads, M decisions, the address of an `Ask`; [ASKED,N] numbers;
# [2,N,Z] expected runtime in each zone, and watts there; [2,M] the workload and the place of its
# rule, in the order of the decisions; begins and ends of the Q quiet spans of P policies, [2,P,Q],
# infinite where one has less. Results: [FOUND,N], and the plan has their room.
(
    COUNT, DECISIONS, ASK_AT, ASKED_AT, IN_ZONES_AT, ORDER_AT, FOUND_AT, POLICIES, SPANS, QUIET_AT,
    PLANNING,
) = range(SHARED, SHARED + 11)  # fmt: skip
(
    LATEST_S, CPU_CORES, GPUS, BY_CARBON, BY_PRICE, BY_TIME, PRICE_PER_G, AT_ARRIVAL_G, KEPT_S,
    LEAST_SAVING, LEAST_CHANGE, WAITS_FOR_ROOM, MEMORY_BYTES, STAYS_IN, STAYS_FROM_S, SEEKS_ROOM,
    SPARE_S, NODE_SHARE, MAY_MOVE, FROM_S, QUIET, DUE_S, RUNTIME_ERROR, LATE_PRICE, ASKED,
) = range(25)  # fmt: skip
NO_ZONE_YET = -1  # STAYS_IN of work that is planned anew
NEVER_QUIET = -1  # QUIET of work whose policy has no quiet spans; else their row
(
    PLACE, WHY, EXPECTED, ZONE, ZONE_NOW, ZONE_EXPECTED, SAVING, LACKS_ROOM, HAS_ROOM,
    CARBON, PRICE, CARBON_NOW, PRICE_NOW, MERIT, MERIT_NOW, SOONEST, FOUND,
) = range(17)  # fmt: skip
NO_RULE = -1
QUEUED = -2  # in place of a rule: it starts as soon as there is room, whatever that costs
# What asks a policy outside the library: workload, S starts, the address of the fields of
# SlotColumns, [9,S], and that of the result, [S] costs.
Ask = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)

# What see_slots takes then: S slots; [2,Z] runtimes and watts. Results: [9,Z,S] the fields of
# SlotColumns, a row for each zone, and [3,Z,S] carbon and price, NaN where data is missing, and
# the joules on the nodes that come next, relative to those on the zone's mean node.
SLOTS_SEEN, RUNS_AT, COLUMNS_AT, RAW_AT = range(SHARED, SHARED + 4)
(
    CORES, GPUS_REQUESTED, MEMORY_REQUESTED, COST_WEIGHT, CARBON_WEIGHT, TIME_WEIGHT,
) = range(3, 9)  # numbers  # fmt: skip

# What choose_slots takes: Z zones, S slots, and the zone in which work runs, or NO_ZONE_YET; [2,Z]
# runtimes and watts; [Z] how many slots count; [Z,S] the cost of each slot; [9,Z,S] and [3,Z,S] as
# see_slots writes them. Results: [S] whether it runs in each, and [CHOICE]: its zone, or
# NO_ZONE_YET, that of a run at once, why, what it saves, whether there is room, how many of the S
# slots count, and runtime and means of carbon, price and merit, of the choice and of a run at once.
(
    SLOT_ZONES, OF_COST, RUNNING_IN, SLOT_RUNS_AT, COUNTS_AT, COST_AT, SLOTS_AT, RAW_SLOTS_AT,
    CHOSEN_AT, CHOICE_AT,
) = range(10)  # fmt: skip
(
    LENGTH_S, RESTART_S, MOST_RESTARTS, FIRST_SLOT, KEPT_SLOT, SLOT_SAVING, SLOT_CHANGE,
    SLOT_PRICE_PER_G, SLOT_AT_ARRIVAL_G, SLOT_WAITS,
) = range(10)  # numbers  # fmt: skip
(
    CHOICE_ZONE, CHOICE_ZONE_NOW, CHOICE_WHY, CHOICE_SAVING, CHOICE_HAS_ROOM, CHOICE_SLOTS,
    CHOICE_RUN,
) = range(7)  # fmt: skip
CHOICE = CHOICE_RUN + 8

# What see_nodes takes: R rows of a `NodeTable`, R or 0 of its GPU shares, C watts of power curves,
# the arrays of the table, [C] curves, [2] the result: how many candidates lacked carbon, and how
# many a price, or NO_SUCH_ROW. Then N candidates, Z zones; [N] rows; [4,Z] carbon and price over
# the run, and over the coming day, NaN where data is missing. Results: [15 + 22·N] features,
# float32, those that all share first; [2,N] watts and seconds of a run there, float32.
(
    NODES, SHARES, CURVE_WATTS, FIXED_AT, MOVING_AT, NODE_ZONE_AT, SHARES_AT, CURVES_AT, LACKED_AT,
    CANDIDATES, NODE_ZONES, ROWS_AT, SIGNALS_AT, SHOWN_AT, COSTS_AT, SEEN_NODES,
) = range(16)  # fmt: skip
NO_SUCH_ROW = -1
(
    POD_CORES, POD_MEMORY, POD_GPUS, POD_RUNTIME_S, BY_COST, BY_GRAMS, BY_SPEED, UTILISATION_RATIO,
    GPU_RATIO, EMPTY_NODES_SLEEP, DECIDED_S, LEFT_S, ERROR, ON_TIME, PLANNED_ZONE, PLACING,
) = range(16)  # numbers  # fmt: skip

# What spread_scores takes: N candidates; [N] relative costs, float32. Results: [N] int8 scores, and
# [1] the place of the best, or NO_BEST.
SCORED, SCORED_COST_AT, SCORES_AT, BEST_AT = range(4)
NO_BEST = -1  # all score the same

# What the next three take first: the texts of a prioritize reply's entries, [E,W] bytes, and the
# hash table of the names in them, [H]: see `kernel/node_names.py`.
ENTRIES_LEN, ENTRY_WIDTH, ENTRIES_AT, HASH_BITS, HASH_FACTOR, HASHES_AT, NAMED = range(7)
# What hash_names takes then: K rows; [K] rows. It fills in the hash table, all zero before.
HASHED, HASHED_AT = range(NAMED, NAMED + 2)
# What find_rows takes then: B bytes of a JSON array and what follows it, N names in it; [B] bytes.
# Results: [4,N], the rows and working memory, and [1] how many have no row, or NOT_PLAIN.
TEXT_LEN, NAMES, TEXT_AT, FOUND_ROWS_AT, UNKNOWN_AT = range(NAMED, NAMED + 5)
NOT_PLAIN = -1  # the text must be decoded
# What write_scores takes then: N entries; [N] rows, [N] int8 scores. Result: [1 + N·W] bytes, or
# 2; the first is 0 if there is no such row.
WRITTEN, WRITTEN_ROWS_AT, WRITTEN_SCORES_AT, WRITTEN_AT = range(NAMED, NAMED + 4)

# What rate_candidates takes: the lengths and arrays of a `PackedNet`; B decisions, N candidates;
# [B,F,N] features and [B,C] context, float32. Result: [B,N] relative costs, float32.
(
    NET_SIZES, NET_SIZES_AT, NET_NUMBERS, NET_NUMBERS_AT, RATINGS, RATED, RATED_FEATURES_AT,
    RATED_CONTEXT_AT, RATED_COSTS_AT,
) = range(9)  # fmt: skip

# What see_starts takes: B decisions, S starts; [9,B,S] the fields of SlotColumns. Results: features
# [B,15,S] and context [B,15], float32. Its numbers are those of a `DecisionToMake` and a
# `ComingDay`, which are the same for all B.
SEEN_DECISIONS, SEEN_STARTS, STARTS_TABLE_AT, START_FEATURES_AT, START_CONTEXT_AT = range(5)
(
    WORK_CORES, WORK_MEMORY, WORK_GPUS, WORK_RUNTIME_S, FOR_COST, FOR_CARBON, FOR_SPEED,
    MEAN_MEMORY, ASKED_S, ASKED_LEFT_S, ASKED_ERROR, ASKED_ON_TIME, DAY_CARBON, DAY_PRICE,
    SEEING_STARTS,
) = range(15)  # numbers  # fmt: skip

# What see_power_caps takes: B decisions, L power caps; [B,6,L] the fields of CapColumns; [B,19]
# those of a `DecisionToMake`, as above, and then of a `CappedDomain`. Results: features [B,13,L]
# and context [B,15], float32.
(
    CAPPED_DECISIONS, SEEN_CAPS, CAPS_TABLE_AT, CAPPED_AT, CAP_FEATURES_AT, CAP_CONTEXT_AT,
) = range(6)  # fmt: skip
(
    CAP_DEARNESS, NEEDED_SPEED, OF_GPU, OF_METER, CORES_BUSY, CORES_WAITING, CORES_PLANNED,
    SEEING_CAPS,
) = range(12, 20)  # fmt: skip
