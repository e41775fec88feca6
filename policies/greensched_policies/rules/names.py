"""The names of all rules by kind, for code that needs no rule itself, and so no numpy.

Written by `make docs` from catalogue.py; changes by hand are lost.
"""

WHERE_NAMES = (
    "bin-pack",
    "carbon-threshold",
    "fastest",
    "first-fit",
    "keids",
    "kubernetes-default",
    "least-carbon",
    "least-cost",
    "least-energy",
    "spread",
    "tetris",
    "topsis",
    "weighted-cost",
)
WHEN_NAMES = (
    "carbon-time",
    "cheapest-window",
    "clean-threshold",
    "lowest-slot",
    "lowest-window",
    "planned-window",
    "price-threshold",
    "run-now",
)
BAD_WHEN_NAMES = (
    "reject-all",
    "reject-long",
)
ORDER_NAMES = (
    "f1",
    "f2",
    "f3",
    "f4",
    "first-come",
    "longest-first",
    "shortest-first",
    "wfp3",
    "unicep",
)
SLEEP_NAMES = (
    "sleep-after-10m",
    "sleep-at-break-even",
    "sleep-at-once",
    "stay-awake",
)
CAP_NAMES = (
    "cap-60",
    "cap-frugal",
    "cap-when-dirty",
    "full-speed",
)
PAUSE_NAMES = (
    "pause-freely",
    "pause-if-worth",
    "run-through",
    "scale-freely",
)
SCALE_NAMES = ("scale-freely",)
