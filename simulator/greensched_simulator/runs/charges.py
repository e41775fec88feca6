"""The charge for jobs that never ran, so that leaving work undone saves nothing.

A job that never ran is charged more than it could have taken in any schedule of the billed window:
`REJECTION_FACTOR` times the sum of, for each worker:

- the watts that its cores add where the node's power curve is steepest, and those of its GPUs, for
  its runtime there; if it can be suspended, also for its estimate, for restarts; a replica of a
  service is charged for the full use of its cores;
- if nodes can sleep, the idle watts of a node kept awake for it alone, for that time under the
  deepest cap; each time that it could be resumed, the energy to wake that node and to idle until
  the sleep rule that waits longest lets it sleep again; with several workers, also the wait for the
  slowest node to wake;
- the most that bringing its data there as often can take, over the worst link, at the dirtiest
  moment.

Each is at the greatest value of the signal between arrival and the window's end, times the PUE if
that depends on the weather, on the large enough node on which this is most.

While a price is negative, running earns money and not running earns nothing. The greatest price
then counts as 0, so no charge is negative and each is still above the job's true cost. Runs go on
until all started jobs have ended, so no job is half done.
"""

from typing import NamedTuple

import numpy as np

from greensched_core.units import JOULES_PER_KWH
from greensched_policies.billing.timelines import ZoneSeries, held, steps_at
from greensched_policies.costs.cost import JOULES_PER_MWH, Floats, Integers
from greensched_policies.costs.sleeping import SleepColumns
from greensched_policies.planning.outlook import SLOT_S
from greensched_policies.rules.catalogue import SLEEP_RULES
from greensched_simulator.arrays.moving import J_PER_BYTE, PRICE_PER_BYTE, most_moving_s
from greensched_simulator.runs.node_groups import AlikeNodes, groups_of
from greensched_simulator.runs.replica_use import most_use
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import MissingData, zone_series
from greensched_simulator.world.elastic_jobs import Range, range_of
from greensched_simulator.world.services import is_replica
from greensched_simulator.world.world import World

# Above 1, or rejecting a job would cost no more than running it at the worst hour. 2, since a
# rejected job also leaves better hours and fuller nodes to other jobs.
REJECTION_FACTOR = 2.0
_EPSILON = 1e-9  # rounding error of sums of floats, as a share of a capacity


class Charge(NamedTuple):
    """The total charge for the jobs that never ran; 0 if all ran."""

    jobs: int
    energy_j: float
    cost: float  # in the scenario's currency
    carbon_g: float


def charge_of(world: World, schedule: Schedule, until_s: float) -> Charge:
    """Return the charge for the jobs of a schedule that never ran, billed until `until_s`.

    Raises MissingData if a grid has no data for a time at which such a job could have run.
    """
    left = np.flatnonzero(np.isnan(schedule.start_s))
    if left.size == 0:
        return Charge(0, 0.0, 0.0, 0.0)
    energy_j, cost, carbon_g = charges_of(world, left, until_s).sum(axis=1).tolist()
    return Charge(left.size, energy_j, cost, carbon_g)


def charges_of(world: World, left: Integers, until_s: float) -> Floats:
    """Return the joules, money and grams charged for each job of `left`, [3,L].

    Raises MissingData as `charge_of` does.
    """
    arrival_s = world.jobs.arrival_s[left]
    greatest = [_greatest(series, arrival_s, until_s) for series in zone_series(world)]
    dearest = np.zeros((3, left.size))
    for group in groups_of(world):
        most = _most_there(world, left, group, greatest[group.zone], until_s)
        dearest = np.maximum(dearest, most)
    dearest += _most_moved(world, left, until_s)
    if np.isnan(dearest).any():
        raise MissingData(
            f"scenario {world.name}: a grid lacks carbon, price or temperature for a part of the "
            f"{until_s / 3600.0:.0f} h in which a job that never ran could have run: give a file "
            f"without gaps, or a shorter length"
        )
    return REJECTION_FACTOR * dearest


def _most_there(
    world: World, left: Integers, group: AlikeNodes, greatest: Floats, until_s: float
) -> Floats:
    """Return the most joules, money and grams that jobs can take on a group's node, [3,L]."""
    jobs = world.jobs
    asked = np.stack([jobs.cpu_cores[left], jobs.memory_bytes[left], jobs.gpus[left]])
    fits = (asked <= np.array(group.largest)[:, None] * (1 + _EPSILON)).all(axis=0)
    cores = asked[0] * most_use(world)[left]
    watts = cores * group.steepest_watts_per_core + asked[2] * group.watts_per_gpu(jobs, left).max(
        axis=0
    )
    restarts = _most_restarts(world, left, until_s)
    restarts_s = np.where(np.isinf(jobs.save_every_s[left]), 0.0, jobs.estimate_s[left])
    scaled = Range._make(each[left] for each in range_of(jobs, world.scaling))
    workers = jobs.workers[left] * scaled.workers
    speed = np.full(left.size, group.speed)
    # All workers of a job run as long as the one on the slowest node.
    is_alone = workers == 1.0
    speed[~is_alone] = world.nodes.speed.min()
    # A replica's lifetime does not depend on the node's speed.
    speed[is_replica(jobs)[left]] = min(group.speed, 1.0)
    runtime_s = (jobs.runtime_s[left] * scaled.most_work + restarts_s * scaled.workers) / speed
    wakes_j = group.wake_joules + group.saved_watts * _longest_awake_s(world, group)
    alone_j = group.saved_watts * runtime_s / group.slowest(jobs, left) + wakes_j * (1.0 + restarts)
    # Each of several workers may keep its node idle until the last worker's node is awake.
    idle_s = np.where(is_alone, 0.0, world.nodes.wake_s.max())
    idle_s = (idle_s + most_moving_s(world.links, jobs)[left]) * (1.0 + restarts)
    alone_j += group.saved_watts * idle_s
    # Each worker is on another node. The runtime is that of all workers that one may scale into.
    energy_j = np.maximum(watts, 0.0) * runtime_s * jobs.workers[left] + alone_j * workers
    energy_j = np.where(fits, energy_j, 0.0)
    return np.where(energy_j == 0.0, 0.0, energy_j * greatest)


def _most_restarts(world: World, left: Integers, until_s: float) -> Floats:
    """Return how often jobs could be resumed: run segments and pauses take at least a slot each."""
    jobs = world.jobs
    limit_s = np.minimum(jobs.deadline_s[left], until_s)
    restarts = (limit_s - jobs.arrival_s[left]) / (2.0 * SLOT_S)
    return np.where(np.isinf(jobs.save_every_s[left]), 0.0, np.maximum(restarts, 0.0))


def _most_moved(world: World, left: Integers, until_s: float) -> Floats:
    """Return the most joules, money and grams that bringing jobs their data can take, [3,L]."""
    if world.links.size == 0:
        return np.zeros((3, left.size))
    jobs, flat = world.jobs, world.links.reshape(world.links.shape[0], -1)
    times = (1.0 + _most_restarts(world, left, until_s)) * jobs.workers[left]
    times *= range_of(jobs, world.scaling).workers[left] * jobs.data_bytes[left]
    energy_j = times * flat[J_PER_BYTE].max()
    arrival_s, dirtiest = jobs.arrival_s[left], np.zeros(left.size)
    for series in zone_series(world):
        own = _most_from(series.times_s, series.carbon_g_per_kwh[None], arrival_s, until_s)
        dirtiest = np.maximum(dirtiest, own[0])
    carbon_g = np.where(energy_j == 0.0, 0.0, energy_j / JOULES_PER_KWH * dirtiest)
    return np.stack([energy_j, times * flat[PRICE_PER_BYTE].max(), carbon_g])


def _longest_awake_s(world: World, group: AlikeNodes) -> float:
    """Return the longest finite time for which any rule keeps the group's empty nodes awake."""
    if world.empty_nodes_sleep or not group.saved_watts:
        return 0.0
    columns = (group.saved_watts, 0.0, group.wake_joules)
    seen = SleepColumns._make(np.array([[each]]) for each in columns)
    stays_s = [float(rule(seen)[0, 0]) for rule in SLEEP_RULES.values()]
    return max((each for each in stays_s if np.isfinite(each)), default=0.0)


def _greatest(series: ZoneSeries, from_s: Floats, until_s: float) -> Floats:
    """Return the most joules, money and grams at the meter from each time on, [3,L]; at least 0.

    They are per joule at the nodes' PUE; NaN if any part of the time has no data.
    """
    assert series.pue_relative is not None, "a world's series have their PUE"
    values = series.pue_relative * np.stack([
        np.ones(series.times_s.size),
        series.price_per_mwh / JOULES_PER_MWH,
        series.carbon_g_per_kwh / JOULES_PER_KWH,
    ])  # fmt: skip
    return _most_from(series.times_s, values, from_s, until_s)


def _most_from(times_s: Floats, values: Floats, from_s: Floats, until_s: float) -> Floats:
    """Return the greatest value of each row, [K,T], from each time on, [K,L]; at least 0."""
    last = max(int(np.searchsorted(times_s, until_s, side="left")), 1)
    from_there_on = np.maximum.accumulate(values[:, last - 1 :: -1], axis=1)[:, ::-1]
    steps = steps_at(from_s, times_s[:last])
    return np.stack([np.maximum(held(steps, most), 0.0) for most in from_there_on])
