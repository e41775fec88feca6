"""The record of a run as rows: jobs, decisions, hours of nodes, steps of grids.

Rows are yielded in parts of bounded size. Times are seconds since the scenario's start.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from greensched_policies.costs.cost import Floats, Integers
from greensched_simulator.policy import Policy
from greensched_simulator.results.recorded_columns import (
    DECISIONS_TABLE,
    GRID,
    JOBS_TABLE,
    NODE_HOURS,
    REPLICAS,
    SERVICES,
    RecordedTable,
)
from greensched_simulator.runs.job_times import meets_deadline, ready_from_s, slowdowns, waits_s
from greensched_simulator.runs.job_transfers import brought, transfers_of
from greensched_simulator.runs.node_hours import node_hours
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.service_latency import Served, served
from greensched_simulator.world.services import is_replica
from greensched_simulator.world.world import World

PART_ROWS = 100_000
_CONSEQUENCES = ("fail", "wake", "move")  # of decisions or of chance
# The order of decisions made at the same time.
_DECISIONS = (
    "reject", "delay", "suspend", "fail", "wake", "move", "place", "resume", "sleep", "cap",
)  # fmt: skip


def job_rows(world: World, policy: Policy, schedule: Schedule) -> Iterator[pa.Table]:
    """Yield a row for each job, in order of arrival; cells are empty without a run or a deadline.

    Service replicas are in `replica_rows`.
    """
    jobs = world.jobs
    has_deadline = np.isfinite(jobs.deadline_s)
    slowdown, wait_s = slowdowns(world, schedule), waits_s(world, schedule)
    run_segments = np.bincount(schedule.run_segments.of_jobs.job, minlength=jobs.arrival_s.size)
    ready_s = ready_from_s(world, schedule)
    can_stop = np.isfinite(jobs.save_every_s)
    is_met = meets_deadline(world, schedule)
    every = np.flatnonzero(~is_replica(jobs))
    for some in _parts(every.size):
        part = every[some]
        node = schedule.node[part]
        columns = {
            "job": [world.job_names[place] for place in part],
            **{name: getattr(jobs, name)[part] for name in jobs._fields},
            **{name: getattr(schedule, name)[part] for name in ("planned_s", "start_s", "end_s")},
            "deadline_s": np.where(has_deadline[part], jobs.deadline_s[part], np.nan),
            "save_every_s": np.where(can_stop[part], jobs.save_every_s[part], np.nan),
            "data_zone": _words(jobs.data_zone[part], world.zones, jobs.data_bytes[part] > 0.0),
            "ready_s": ready_s[part],
            "suspensions": np.maximum(run_segments[part] - 1, 0),
            **_places(world, node, node >= 0),
            "wait_s": wait_s[part],
            "slowdown": slowdown[part],
            "is_deadline_met": pa.array(is_met[part], mask=~has_deadline[part]),
        }
        yield _table(JOBS_TABLE, world, policy, columns)


def replica_rows(world: World, policy: Policy, schedule: Schedule) -> Iterator[pa.Table]:
    """Yield a row for each life of a replica: wanted time, run time and node."""
    for service in world.services:
        for some in _parts(service.rows.size):
            part = service.rows[some]
            node = schedule.node[part]
            columns = {
                "replica": [world.job_names[place] for place in part],
                "service": _words(np.zeros(part.size, np.int64), (service.name,)),
                "wanted_s": world.jobs.arrival_s[part],
                "leaves_s": world.jobs.leaves_at_s[part],
                "start_s": schedule.start_s[part],
                "end_s": schedule.end_s[part],
                **_places(world, node, node >= 0),
            }
            yield _table(REPLICAS, world, policy, columns)


def service_rows(world: World, policy: Policy, schedule: Schedule) -> Iterator[pa.Table]:
    """Yield a row for each slot of each service: its requests and their latency."""
    for service in world.services:
        begins_s, found = service.curve.begins_s, served(world, schedule, service)
        for part in _parts(service.wanted.size):
            columns = {
                "service": _words(np.zeros(service.wanted[part].size, np.int64), (service.name,)),
                "from_s": begins_s[:-1][part],
                "length_s": np.diff(begins_s)[part],
                "wanted": service.wanted[part],
                **{
                    name: getattr(found, name)[part]
                    for name in Served._fields
                    if name not in ("late_by_limit", "limits_s")
                },
            }
            yield _table(SERVICES, world, policy, columns)


def decision_rows(
    world: World, policy: Policy, schedule: Schedule, until_s: float
) -> Iterator[pa.Table]:
    """Yield a row for each decision until `until_s`, in order of time.

    A job is `reject`ed or `delay`ed, `place`d on a node, where it runs once the node is awake,
    after a `move` of its data if that lay in another zone, `suspend`ed and `resume`d. A node may
    `sleep`, `wake` and be `cap`ped. No policy decides that nodes `fail` and thereby suspend the
    jobs on them.
    """
    kinds, caps = _times_jobs_and_nodes(world, schedule, until_s), schedule.caps
    at_s, job, node = (np.concatenate(column) for column in zip(*kinds, strict=True))
    word = np.repeat(np.arange(len(kinds)), [times_s.size for times_s, _, _ in kinds])
    capped = np.full((2, at_s.size), np.nan)
    capped[:, at_s.size - caps.node.size :] = caps.cpu_frequency, caps.gpu_cap
    order = np.argsort(at_s, kind="stable")
    for part in _parts(job.size):
        at = order[part]
        chosen, delaying = job[at], word[at] == _DECISIONS.index("delay")
        columns = {
            "at_s": at_s[at],
            "job": [world.job_names[each] if each >= 0 else None for each in chosen],
            "decision": _words(word[at], _DECISIONS),
            "until_s": np.where(delaying, schedule.planned_s[chosen], np.nan),
            **_places(world, node[at], node[at] >= 0),
            "cpu_frequency": capped[0, at],
            "gpu_cap": capped[1, at],
        }
        yield _table(DECISIONS_TABLE, world, policy, columns)


def decisions_made(world: World, schedule: Schedule, until_s: float) -> int:
    """Return how many rows of `decision_rows` are decisions, not consequences of such."""
    kinds = zip(_DECISIONS, _times_jobs_and_nodes(world, schedule, until_s), strict=True)
    return sum(times_s.size for name, (times_s, _, _) in kinds if name not in _CONSEQUENCES)


def _times_jobs_and_nodes(
    world: World, schedule: Schedule, until_s: float
) -> tuple[tuple[Floats, Integers, Integers], ...]:
    """Return the times, jobs and nodes of each kind of decision, in the order of `_DECISIONS`."""
    ready_s, sleeps, caps = ready_from_s(world, schedule), schedule.sleeps, schedule.caps
    ran = schedule.run_segments
    of_worker = np.stack([ran.job, ran.worker])
    again = np.flatnonzero((np.diff(of_worker, prepend=-1) == 0).all(axis=0))
    placed = np.setdiff1d(np.arange(ran.job.size), again)
    # A job that waits for one that never ran was never decided about.
    rejected = np.flatnonzero(np.isnan(schedule.planned_s) & ~np.isnan(ready_s))
    delayed = np.flatnonzero(schedule.planned_s > ready_s)
    asleep, woken = (np.flatnonzero(each < until_s) for each in (sleeps.asleep_s, sleeps.woken_s))
    failed = np.flatnonzero(schedule.outages.asleep_s < until_s)
    moved, moved_job = transfers_of(world, schedule), ran.job[brought(world, schedule)]
    return (
        (world.jobs.arrival_s[rejected], rejected, _none(rejected)),
        (ready_s[delayed], delayed, _none(delayed)),
        (ran.end_s[again - 1], ran.job[again], ran.node[again - 1]),
        (schedule.outages.asleep_s[failed], _none(failed), schedule.outages.node[failed]),
        (sleeps.woken_s[woken], _none(woken), sleeps.node[woken]),
        (moved.start_s, moved_job, moved.node),
        (ran.start_s[placed], ran.job[placed], ran.node[placed]),
        (ran.start_s[again], ran.job[again], ran.node[again]),
        (sleeps.asleep_s[asleep], _none(asleep), sleeps.node[asleep]),
        (caps.from_s, _none(caps.node), caps.node),
    )


def _none(alike: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return -1, for no job or node, as often as `alike` has entries."""
    return np.full(alike.size, -1)


def node_hour_rows(
    world: World, policy: Policy, schedule: Schedule, until_s: float
) -> Iterator[pa.Table]:
    """Yield a row for each node and hour up to `until_s`; they add up to the bill."""
    for rows in node_hours(world, schedule, until_s):
        for part in _parts(rows.node.size):
            columns = {name: column[part] for name, column in vars(rows).items()}
            places = _places(world, columns["node"], columns["node"] >= 0)
            yield _table(NODE_HOURS, world, policy, columns | places)


def grid_rows(world: World, until_s: float) -> Iterator[pa.Table]:
    """Yield a row for each step of each zone's grid that begins before `until_s`."""
    grids = world.grids
    if grids.marginal_g_per_kwh.size == 0:
        grids = grids._replace(marginal_g_per_kwh=np.full(grids.times_s.size, np.nan))
    zone = np.repeat(np.arange(len(world.zones)), np.diff(grids.starts))
    pue = np.full(zone.size, np.nan)
    if grids.pue_mean.size:
        pue = grids.pue_relative * grids.pue_mean[zone]
    solar_w = grids.solar_w if grids.solar_w.size else np.full(zone.size, np.nan)
    kept = np.flatnonzero(grids.times_s < until_s)
    for part in _parts(kept.size):
        at = kept[part]
        steps = {
            name: getattr(grids, name)[at]
            for name in GRID.schema.names
            if name not in ("seed", "zone", "time_s", "pue", "solar_w")
        }
        columns = {
            "seed": np.full(at.size, world.seed),
            "zone": _words(zone[at], world.zones),
            "time_s": grids.times_s[at],
            **steps,
            "pue": pue[at],
            "solar_w": solar_w[at],
        }
        yield _of(GRID, columns)


def _parts(count: int) -> Iterator[slice]:
    for first in range(0, count, PART_ROWS):
        yield slice(first, first + PART_ROWS)


def _places(
    world: World, node: npt.NDArray[np.int64], is_known: npt.NDArray[np.bool_]
) -> dict[str, Any]:
    zone = world.nodes.zone[np.maximum(node, 0)]
    return {
        "node": _words(node, world.node_names, is_known),
        "zone": _words(zone, world.zones, is_known),
    }


def _words(
    places: npt.NDArray[np.int64],
    words: tuple[str, ...],
    is_known: npt.NDArray[np.bool_] | None = None,
) -> pa.Array:
    mask = None if is_known is None else ~is_known
    indices = pa.array(places.astype(np.int32), mask=mask)
    return pa.DictionaryArray.from_arrays(indices, pa.array(words, pa.string()))


def _table(
    table: RecordedTable, world: World, policy: Policy, columns: Mapping[str, Any]
) -> pa.Table:
    count = len(columns[table.schema.names[2]])  # the first column after seed and policy
    run = {
        "seed": np.full(count, world.seed),
        "policy": _words(np.zeros(count, np.int64), (policy.name,)),
    }
    return _of(table, {**run, **columns})


def _of(table: RecordedTable, columns: Mapping[str, Any]) -> pa.Table:
    arrays = [_array(columns[column.name], column.kind) for column in table.columns]
    return pa.Table.from_arrays(arrays, schema=table.schema)


def _array(values: Floats | pa.Array | list[str], kind: pa.DataType) -> pa.Array:
    """Return a column; NaN becomes an empty cell."""
    if isinstance(values, pa.Array):
        return values
    return pa.array(values, kind, from_pandas=True)
