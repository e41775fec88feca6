"""Whether a bill and its hours hold all energy: against an integral that is computed apart."""

import itertools
from dataclasses import astuple

import numpy as np
import pytest

from greensched_simulator.runs.node_hours import node_hours
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import bill_of
from greensched_simulator.testing.drawn_power import drawn_watts
from greensched_simulator.testing.small_worlds import free_room
from greensched_simulator.world.world import World


def moments(schedule: Schedule, until_s: float) -> list[float]:
    """Return all times until `until_s` at which something changes, in order."""
    ran = schedule.run_segments
    times = {0.0, until_s, *ran.start_s.tolist(), *ran.end_s.tolist()}
    for column in (*schedule.off[1:4], schedule.caps.from_s):
        times |= {*column.tolist()}
    return sorted(each for each in times if each <= until_s)


def assert_all_energy_is_told(world: World, schedule: Schedule, until_s: float) -> None:
    """Assert that bill and hours hold what nodes draw, and that no node has more than its room."""
    bill = bill_of(world, schedule, until_s)
    joules = np.zeros((4, world.nodes.zone.size))
    for begin_s, end_s in itertools.pairwise(moments(schedule, until_s)):
        joules += drawn_watts(world, schedule, begin_s) * (end_s - begin_s)
        assert (free_room(world, schedule, begin_s) >= -1e-6).all()
    for billed, integral in zip(astuple(bill)[:4], joules, strict=True):
        np.testing.assert_allclose(billed, integral, rtol=1e-9, atol=1e-3)
    rows = [*node_hours(world, schedule, until_s)]
    for name in ("energy_active_j", "energy_idle_j", "energy_sleep_j", "energy_wake_j"):
        told_j = sum(getattr(each, name).sum() for each in rows)
        assert told_j == pytest.approx(getattr(bill, name).sum(), rel=1e-9, abs=1e-3)
