"""How full the cluster was: cores, memory and GPUs requested by what ran, of all that there are."""

from typing import NamedTuple

import numpy as np

from greensched_policies.costs.cost import Floats
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.world.world import World


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
    peak = _peak(asked, begin_s, end_s) / whole
    return Utilisation(*np.stack([mean, peak], axis=1).ravel().tolist())


def _peak(asked: Floats, begin_s: Floats, end_s: Floats) -> Floats:
    """Return the most that is asked for at any moment, [K]; what ends then is gone. asked: [K,P].

    The amount only rises at a begin, so the peak is at one.
    """
    first, last = np.argsort(begin_s, kind="stable"), np.argsort(end_s, kind="stable")
    ended = np.searchsorted(end_s[last], begin_s[first], side="right")
    left = np.concatenate([np.zeros((asked.shape[0], 1)), asked[:, last].cumsum(axis=1)], axis=1)
    running: Floats = asked[:, first].cumsum(axis=1) - left[:, ended]
    most: Floats = running.max(axis=1, initial=0.0)
    return most
