"""The watts that nodes draw at a moment of a schedule, for tests: independently of the bill."""

import numpy as np

from greensched_policies.costs.capping import cpu_power, cpu_speed, gpu_speed, gpu_watts
from greensched_policies.costs.cost import Floats
from greensched_simulator.runs.run_inputs import cost_model
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.world.services import ServiceRows
from greensched_simulator.world.world import World


def drawn_watts(world: World, schedule: Schedule, at_s: float) -> Floats:
    """Return the active, idle, sleeping and waking watts of each node right after `at_s`, [4,N].

    They are computed independently of the bill.
    """
    used = used_cores(world, schedule, at_s)
    ran = schedule.run_segments
    runs = (ran.start_s <= at_s) & (at_s < ran.end_s)
    machines, model = world.nodes, cost_model(world)
    active, idle, asleep, waking = np.zeros((4, machines.zone.size))
    sleeps, away = schedule.sleeps, schedule.outages
    for node in range(machines.zone.size):
        here = runs & (ran.node == node)
        jobs = ran.job[here]
        curve = world.curve_watts.reshape(-1, 11)[int(machines.curve_class[node])]
        cpu_frequency, gpu_cap = caps_at(schedule, node, at_s)
        load = min(used[here].sum() / machines.cpu_capacity[node], 1.0)
        active[node] = np.interp(load, np.linspace(0.0, 1.0, 11), curve) - curve[0]
        active[node] *= cpu_power(cpu_frequency)
        for job in jobs.tolist():
            active[node] += world.jobs.gpus[job] * _gpu_watts(world, job, node, gpu_cap)
        off = (sleeps.node == node) & (sleeps.asleep_s <= at_s) & (at_s < sleeps.awake_s)
        if off.any():
            assert off.sum() == 1
            assert not here.any()
            is_waking = bool(sleeps.woken_s[off][0] <= at_s)
            (waking if is_waking else asleep)[node] = (
                machines.wake_w[node] if is_waking else machines.sleep_w[node]
            )
        elif ((away.node == node) & (away.asleep_s <= at_s) & (at_s < away.awake_s)).any():
            assert not here.any()
        elif here.any() or not model.empty_nodes_sleep:
            idle[node] = curve[0] + machines.gpu_capacity[node] * machines.gpu_idle_w[node]
    return np.stack([active, idle, asleep, waking]) * machines.pue * _weather(world, at_s)


def _gpu_watts(world: World, job: int, node: int, gpu_cap: float) -> float:
    """Return the watts above idle of one of a job's GPUs on a node."""
    idle_w, peak_w = world.nodes.gpu_idle_w[node], world.nodes.gpu_peak_w[node]
    return float(gpu_watts(gpu_cap, idle_w, peak_w, world.jobs.gpu_ratio[job]))


def used_cores(world: World, schedule: Schedule, at_s: float) -> Floats:
    """Return the cores in use by each run segment right after `at_s`, [P], if it runs."""
    ran = schedule.run_segments
    used: Floats = world.jobs.cpu_cores[ran.job] * world.utilisation_ratio
    for service in world.services:
        mine = np.flatnonzero(np.isin(ran.job, service.rows)).tolist()
        ready = [each for each in mine if _answers(world, schedule, service, each, at_s)]
        slots = np.flatnonzero(service.curve.begins_s[:-1] <= at_s)
        requests_per_s = service.curve.rate_per_s[slots[-1]]
        speed = sum(_speed_of(world, schedule, service, each, at_s) for each in ready)
        most_per_s = speed * service.places / service.times.mean_s
        for each in ready:
            share = min(requests_per_s / most_per_s, 1.0)
            used[each] = world.jobs.cpu_cores[ran.job[each]] * share
    return used


def _answers(
    world: World, schedule: Schedule, service: ServiceRows, segment: int, at_s: float
) -> bool:
    """Return whether a replica answers requests right after `at_s`."""
    ran = schedule.run_segments
    is_first = world.jobs.arrival_s[ran.job[segment]] == 0.0
    ready_s = ran.start_s[segment] + (0.0 if is_first else service.startup_s)
    return bool(ready_s <= at_s < ran.end_s[segment])


def _speed_of(
    world: World, schedule: Schedule, service: ServiceRows, segment: int, at_s: float
) -> float:
    """Return the speed of a replica under its node's caps right after `at_s`."""
    ran = schedule.run_segments
    job, node = int(ran.job[segment]), int(ran.node[segment])
    cpu_frequency, gpu_cap = caps_at(schedule, node, at_s)
    speed = float(cpu_speed(cpu_frequency, world.jobs.frequency_sensitivity[job]))
    if world.jobs.gpus[job] > 0:
        idle_w, peak_w = world.nodes.gpu_idle_w[node], world.nodes.gpu_peak_w[node]
        speed = min(speed, float(gpu_speed(gpu_cap, idle_w, peak_w, world.jobs.gpu_ratio[job])))
    return speed * float(service.speed[node])


def caps_at(schedule: Schedule, node: int, at_s: float) -> tuple[float, float]:
    """Return a node's CPU frequency and GPU cap right after `at_s`."""
    caps = schedule.caps
    set_by_now = np.flatnonzero((caps.node == node) & (caps.from_s <= at_s))
    if not set_by_now.size:
        return 1.0, 1.0
    return float(caps.cpu_frequency[set_by_now[-1]]), float(caps.gpu_cap[set_by_now[-1]])


def _weather(world: World, at_s: float) -> Floats:
    """Return the PUE right after `at_s` relative to each node's, [N]."""
    grids, found = world.grids, np.ones(len(world.zones))
    for zone in range(found.size if grids.pue_relative.size else 0):
        begun = [at for at in range(*grids.starts[zone : zone + 2]) if grids.times_s[at] <= at_s]
        found[zone] = grids.pue_relative[begun[-1]]
    return found[world.nodes.zone]
