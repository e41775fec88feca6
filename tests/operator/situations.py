"""What the planner sees of a cluster, told in a line."""

from collections.abc import Sequence

import numpy as np

from greensched_operator.planning.cluster_state import Zone
from greensched_operator.planning.outlooks import Outlooks, slot_begin
from greensched_operator.planning.situation import Situation
from greensched_policies.planning.outlook import SLOT_S, outlook_of
from greensched_policies.rules.catalogue import WHEN_RULES


def situation_of(
    now_s: float,
    carbon: Sequence[float],
    price: Sequence[float] | float,
    *zones: Zone,
    jitter_s: float = 0.0,
) -> Situation:
    """Return idle zones of the same carbon and price, slot by slot; every zone takes all work."""
    grams = np.array([carbon] * len(zones), dtype=float)
    prices = np.broadcast_to(np.array(price, dtype=float), grams.shape)
    outlook = outlook_of(slot_begin(now_s), SLOT_S, grams, prices)
    count = len(zones)
    return Situation(
        now_s=now_s,
        zones=zones,
        outlooks=Outlooks(outlook, ("test",) * count, (now_s,) * count),
        running=(),
        earlier_plans=(),
        zones_for=lambda _: frozenset(),
        when_for=lambda _: WHEN_RULES["planned-window"],
        opens_s=lambda _: 0.0,
        jitter_s=jitter_s,
    )
