"""The most that panels and batteries can save of a bill under any schedule.

A joule that a zone draws from its panels or battery need not be imported. No schedule saves more
than the lesser of two sums:

- Each joule of the panels is worth the signal of its moment or, through the battery, the highest
  signal still to come, less the battery's losses.
- Panels serve no more than the nodes can draw, and the battery always discharges at its maximum.

So a bill is at least its bound without panels minus that saving. It is also at least what importing
the most that nodes can draw earns while prices are negative.
"""

import numpy as np

from greensched_core.errors import BadInput
from greensched_core.units import JOULES_PER_KWH
from greensched_policies.costs.cost import JOULES_PER_MWH, Floats
from greensched_simulator.bounds.inputs import SignalName
from greensched_simulator.runs.simulation import zone_series
from greensched_simulator.world.world import World, highest_watts


def saved_by_panels(world: World, signal: SignalName, until_s: float) -> tuple[float, float]:
    """Return the most that panels can save until `until_s`, and a lower bound on bills with them.

    Raises BadInput if their yield is missing.
    """
    saved, least = 0.0, 0.0
    nodes, grids = world.nodes, world.grids
    most_w = highest_watts(world) * nodes.pue
    for zone, series in enumerate(zone_series(world)):
        assert series.pue_relative is not None, "a world's series have their PUE"
        times_s = np.append(np.clip(series.times_s, 0.0, until_s), until_s)
        length_s = np.diff(times_s)
        kept = length_s > 0.0
        values = {
            "carbon": series.carbon_g_per_kwh / JOULES_PER_KWH,
            "cost": series.price_per_mwh / JOULES_PER_MWH,
        }[signal][kept]
        drawn_w = float(most_w[nodes.zone == zone].sum()) * series.pue_relative[kept]
        least += float((np.minimum(values, 0.0) * drawn_w * length_s[kept]).sum())
        battery = world.batteries[zone]
        if battery is None:
            continue
        solar_w = grids.solar_w[slice(*grids.starts[zone : zone + 2])][kept]
        if np.isnan(solar_w).any():
            raise BadInput(
                f"scenario {world.name}: {world.zones[zone]} lacks sun before {until_s:.0f} s"
            )
        worth = np.maximum(values, 0.0)
        later: Floats = np.maximum.accumulate(worth[::-1])[::-1] * battery.efficiency
        through = np.maximum(worth, later if battery.capacity_j else 0.0) * solar_w
        at_once = worth * np.minimum(solar_w, drawn_w)
        given = worth * np.minimum(battery.discharge_w, drawn_w)
        saved += float(min((each * length_s[kept]).sum() for each in (through, at_once + given)))
    return saved, least
