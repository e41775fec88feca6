"""The least time and cost of transferring a job's data to a zone, for bounds."""

from typing import NamedTuple

import numpy as np

from greensched_core.units import JOULES_PER_KWH
from greensched_policies.billing.timelines import steps_at
from greensched_policies.costs.cost import Floats
from greensched_simulator.arrays.moving import J_PER_BYTE, LATENCY_S, PRICE_PER_BYTE, S_PER_BYTE
from greensched_simulator.bounds.inputs import SignalName
from greensched_simulator.runs.simulation import zone_series
from greensched_simulator.world.world import World


class Move(NamedTuple):
    """The least that a job pays for running in another zone than its data."""

    wait_s: float
    cost: float  # joules, grams or money


_NOTHING = Move(0.0, 0.0)


class Moves:
    """The least figures of all links into each zone: data may come by way of other zones.

    With `suspend`, jobs that can be suspended may stop and go on. With node failures all jobs may.
    """

    def __init__(self, world: World, signal: SignalName, until_s: float, *, suspend: bool) -> None:
        self._jobs, zones = world.jobs, len(world.zones)
        # A resumed job's data lies where its first worker ran, for all workers.
        goes_on = suspend & np.isfinite(world.jobs.save_every_s) | (world.outages.node.size > 0)
        self._times = np.where(goes_on, 1.0, world.jobs.workers)
        self._least = np.zeros((3, zones))  # seconds, seconds per byte, cost per byte
        if world.links.size == 0:
            return
        cost = world.links[PRICE_PER_BYTE if signal == "cost" else J_PER_BYTE]
        if signal == "carbon":
            grams = _cleanest(world, until_s)
            cost = cost / JOULES_PER_KWH * 0.5 * np.add.outer(grams, grams)
        links = np.stack([world.links[LATENCY_S], world.links[S_PER_BYTE], cost])
        self._least = np.where(np.eye(zones, dtype=np.bool_), np.inf, links).min(axis=1)

    def of(self, job: int, zone: int) -> Move:
        """Return the least wait and cost for a job's data to be in the zone where it runs."""
        size = float(self._jobs.data_bytes[job])
        if size == 0.0 or self._jobs.data_zone[job] == zone:
            return _NOTHING
        latency_s, per_byte_s, cost = self._least[:, zone].tolist()
        return Move(latency_s + size * per_byte_s, size * cost * float(self._times[job]))


def _cleanest(world: World, until_s: float) -> Floats:
    """Return each zone's least carbon intensity until `until_s`, [Z]; g/kWh, 0 if missing."""
    least = []
    for series in zone_series(world):
        first, last = steps_at(np.array([0.0, until_s]), series.times_s)
        within = series.carbon_g_per_kwh[max(first, 0) : last + 1]
        least.append(np.nan_to_num(within, nan=0.0).min())
    return np.array(least)
