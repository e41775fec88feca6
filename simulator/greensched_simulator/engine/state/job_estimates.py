"""Estimates of each job's run before it is placed, from the nodes that can take it."""

from typing import NamedTuple

import numpy as np

from greensched_policies.costs.cost import Floats
from greensched_simulator.arrays.jobs import JobArrays
from greensched_simulator.arrays.moving import NO_LINKS, most_moving_s
from greensched_simulator.arrays.nodes import NodeArrays
from greensched_simulator.arrays.precedence import Precedence, latest_ends_s

_EPSILON = 1e-9  # rounding error of sums of floats, as a share of a capacity


class JobEstimates(NamedTuple):
    """Estimates of J jobs in Z zones."""

    # [J] latest end with which the job, and all jobs that wait for it, can meet their deadlines
    latest_end_s: Floats
    # [J] latest start that is expected to end by then on any node that can take the job, asleep if
    # it ever sleeps; the arrival of jobs without a deadline
    latest_start_s: Floats
    # [J,Z] expected on the zone's nodes, mean over their cores; infinite where none can take it
    runtime_s: Floats
    # [J,Z] joules of such a run on the zone's mean node, without idling; infinite likewise
    run_j: Floats
    slowest: Floats  # [J] seconds of the slowest able node per second on the reference core
    # [J] longest wait on the node before the job runs, while the node wakes and fetches the data
    # from any zone; the latest start allows for it
    lead_s: Floats


def estimates_of(
    jobs: JobArrays,
    precedence: Precedence,
    nodes: NodeArrays,
    zones: int,
    wake_s: Floats,
    links: Floats = NO_LINKS,
) -> JobEstimates:
    """Return the jobs' estimates on empty nodes, without `run_j`; each job must fit some node.

    `wake_s`, [N], is the time that a node takes to wake, 0 if it never sleeps.
    """
    capacities = [nodes.cpu_capacity, nodes.memory_capacity, nodes.gpu_capacity]
    shapes, counts = np.unique(
        np.stack([*capacities, nodes.speed, nodes.zone, wake_s]), axis=1, return_counts=True
    )
    count = jobs.arrival_s.size
    longest_s, slowest, lead_s = np.full(count, -np.inf), np.zeros(count), np.zeros(count)
    cores, core_seconds = np.zeros((count, zones)), np.zeros((count, zones))
    for (cpu, memory_bytes, gpus, speed, zone, wake), alike in zip(shapes.T, counts, strict=True):
        able = jobs.cpu_cores <= cpu * (1.0 + _EPSILON)
        able &= jobs.memory_bytes <= memory_bytes * (1.0 + _EPSILON)
        able &= jobs.gpus <= gpus + _EPSILON
        waits_s = wake + most_moving_s(links, jobs, int(zone))
        took_s = jobs.estimate_s / speed + waits_s
        np.maximum(longest_s, took_s, out=longest_s, where=able)
        np.maximum(slowest, 1.0 / speed, out=slowest, where=able)
        np.maximum(lead_s, waits_s, out=lead_s, where=able)
        cores[:, int(zone)] += able * (cpu * alike)
        core_seconds[:, int(zone)] += able * (cpu * alike / speed)
    slowness = np.divide(core_seconds, cores, out=np.full(cores.shape, np.inf), where=cores > 0)
    # One of several workers may be on the slowest node while another waits longest for its node.
    apart_s = jobs.estimate_s * slowest + lead_s
    longest_s = np.where(jobs.workers > 1.0, apart_s, longest_s)
    latest_end_s = latest_ends_s(precedence, jobs.deadline_s, longest_s)
    latest_s = latest_end_s - longest_s
    return JobEstimates(
        latest_end_s,
        np.where(np.isinf(latest_s), jobs.arrival_s, latest_s),
        slowness * jobs.estimate_s[:, None],
        np.zeros((count, 0)),
        slowest,
        lead_s,
    )
