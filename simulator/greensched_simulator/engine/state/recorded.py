"""The record of each job that the engine keeps during a run."""

from typing import NamedTuple

import numpy as np

from greensched_policies.compiling.compiled import fast
from greensched_policies.costs.cost import Floats, Integers
from greensched_simulator.arrays.jobs import JobArrays
from greensched_simulator.engine.state.choices import NOWHERE
from greensched_simulator.engine.state.cluster import ClusterState
from greensched_simulator.engine.state.progress import nothing_done
from greensched_simulator.engine.state.terms import RunConfig

NODE, GPUS = 0, 1  # rows of `others`


class Recorded(NamedTuple):
    """What happened to each job, [J]; for suspended jobs, in their last run segment.

    Columns without another shape hold a job's first worker; `others` holds the other workers.
    """

    planned_s: Floats  # planned start; NaN if it was rejected
    planned_zone: Integers  # the zone in which the plan keeps room for it
    kept_from_s: Floats  # the plan keeps room for it, or its next run segment, from then
    kept_until_s: Floats  # until then
    placed_s: Floats  # when it got its node; NaN if never
    node_asleep_s: Floats  # since when the node that it woke had slept; NaN: the node was awake
    start_s: Floats  # when it ran, once all its nodes were awake; NaN if never
    end_s: Floats
    kept_cores: Floats  # cores that the plan keeps for it
    kept_gpus: Floats  # and GPUs, if the plan has any
    node: Integers  # NOWHERE if it does not run, or never did
    workers: Integers  # its number of workers; 1 for an elastic job that waits
    gpus: Integers  # bit mask of its GPUs on the node; 0 where GPUs are not tracked
    first_other: Integers  # index of its first other worker in `others`; unused if it has none
    others: Integers  # [2,W] node and GPUs of each
    others_asleep_s: Floats  # [W] since when that node had slept
    others_until_s: Floats  # [W] until when the plan keeps room for each
    data_zone: Integers  # where its data lay when it was placed, or lies while it waits
    progress: Floats  # see `progress`
    # [R+1,2] the job of each placed worker, in order, and its node's utilisation without it; the
    # first row holds their number; no rows in runs that do not record them
    placings: Floats


@fast
def nothing_recorded(
    jobs: JobArrays, cluster: ClusterState, terms: RunConfig, nodes_fail: bool
) -> Recorded:
    """Return the record of a new run."""
    count, is_capped = jobs.arrival_s.size, cluster.cap.shape[1] > 0
    most_workers = np.where(jobs.scaling > 0.0, float(terms.scaling.shape[1]), jobs.workers)
    others = np.maximum(most_workers - 1.0, 0.0)
    may_stop = terms.may_suspend or terms.may_pause
    is_tracked = is_capped or may_stop or jobs.workers.max() > 1.0 or nodes_fail
    first = np.zeros(count, np.int64)
    first[1:] = np.cumsum(others)[:-1].astype(np.int64)
    return Recorded(
        np.full(count, np.nan),
        np.full(count, NOWHERE, np.int64),
        np.full(count, np.nan),
        np.full(count, np.nan),
        np.full(count, np.nan),
        np.full(count, np.nan),
        np.full(count, np.nan),
        np.full(count, np.nan),
        np.zeros(count),
        np.zeros(count),
        np.full(count, NOWHERE, np.int64),
        jobs.workers.astype(np.int64),
        np.zeros(count, np.int64),
        first,
        np.full((2, int(others.sum())), NOWHERE, np.int64),
        np.full(int(others.sum()), np.nan),
        np.full(int(others.sum()), np.nan),
        jobs.data_zone.copy(),
        nothing_done(jobs, is_tracked),
        np.zeros((0, 2)),
    )
