"""How full the cluster was: cores, memory and GPUs requested by what ran, of all that there are."""

from typing import NamedTuple

import numpy as np

from greensched_policies.costs.cost import Floats
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.world.world import World

_BEGINS_IN_A_PART = 16  # fewer make more parts, more leave more to sort: both take longer
_EPSILON = 1e-9  # rounding error of sums of floats, as a share of a capacity


class Utilisation(NamedTuple):
    """Shares of the whole cluster, 1 is all of it; nodes that sleep or have failed count too.

    All are 0 if nothing ran, those of GPUs also without GPUs.
    """

    cpu_utilisation_mean: float  # over the window
    cpu_utilisation_peak: float
    memory_utilisation_mean: float
    memory_utilisation_peak: float
    gpu_utilisation_mean: float
    gpu_utilisation_peak: float


def utilisation_of(world: World, schedule: Schedule, until_s: float) -> Utilisation:
    """Return the shares of a schedule from 0 to `until_s`, in seconds, replicas included.

    The mean is requests times their time, divided by capacity times `until_s`: the integral of the
    requested amount over the window. The peak is the greatest share at any moment.
    """
    jobs, nodes, ran = world.jobs, world.nodes, schedule.run_segments
    capacity = np.array(
        [nodes.cpu_capacity.sum(), nodes.memory_capacity.sum(), nodes.gpu_capacity.sum()]
    )
    begin_s = np.minimum(ran.start_s, until_s)
    end_s = np.minimum(ran.end_s, until_s)
    asked = np.stack([jobs.cpu_cores[ran.job], jobs.memory_bytes[ran.job], jobs.gpus[ran.job]])
    whole = np.maximum(capacity, 1e-9)  # without GPUs, nothing asks for any
    mean = asked @ (end_s - begin_s) / (whole * until_s)
    peak = _peak(asked, begin_s, end_s, capacity) / whole
    return Utilisation(*np.stack([mean, peak], axis=1).ravel().tolist())


def _peak(asked: Floats, begin_s: Floats, end_s: Floats, capacity: Floats) -> Floats:
    """Return the most that is asked for at any moment, [K]; what ends then is gone. asked: [K,P].

    To sort all begins and ends would take a third of the time of all other figures. So the time is
    cut into equal parts. In each part, the amount rises at most by what begins there; only those
    that may hold the peak are sorted.
    """
    parts = max(begin_s.size // _BEGINS_IN_A_PART, 1)
    times_s = np.concatenate([end_s, begin_s])  # ends first at the same time
    part = np.minimum(times_s * (parts / max(end_s.max(initial=0.0), 1.0)), parts - 1.0)
    part = part.astype(np.int64)
    down, up = (
        np.stack([np.bincount(own, each, parts) for each in asked])
        for own in np.split(part, [end_s.size])
    )
    at_end = np.cumsum(up - down, axis=1)
    at_begin = np.concatenate([np.zeros((asked.shape[0], 1)), at_end[:, :-1]], axis=1)
    highest: Floats = at_end.max(axis=1)
    at_most = np.minimum(at_begin + up, capacity[:, None])
    may_peak = np.any(at_most > highest[:, None] * (1 + _EPSILON), axis=0)
    some = np.flatnonzero(may_peak.take(part))
    some = some[np.argsort(times_s[some], kind="stable")]
    changes = np.concatenate([-asked, asked], axis=1)[:, some]
    first = np.flatnonzero(np.diff(part[some], prepend=-1))  # change of each part
    since = np.cumsum(changes, axis=1)
    base = at_begin[:, part[some[first]]] - since[:, first] + changes[:, first]
    running = since + np.repeat(base, np.diff(np.append(first, some.size)), axis=1)
    most: Floats = np.maximum(highest, running.max(axis=1, initial=0.0))
    return most
