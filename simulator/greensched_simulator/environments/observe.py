"""An agent's observation of a decision: nodes with room, starts, or power caps. Compiled."""

from typing import Any

import numpy as np

from greensched_policies.compiling.compiled import borrowing, fast, inlined
from greensched_policies.costs.cost import WorkloadColumns
from greensched_policies.encoding.observation import DecisionToMake
from greensched_policies.encoding.timing import Timing
from greensched_policies.kernel.grid_means import coming_day_of
from greensched_policies.kernel.seeing_nodes import NodesShown, Scratch, Singles
from greensched_policies.kernel.seeing_starts import encode_starts
from greensched_policies.kernel.starts import most_slots
from greensched_simulator.engine.execution.cap_signals import cap_signals
from greensched_simulator.engine.execution.learned_caps import show_power_caps
from greensched_simulator.engine.execution.needs import needs_on_nodes
from greensched_simulator.engine.execution.power_caps import look_at_power_caps
from greensched_simulator.engine.execution.workers import new_worker, workload_columns_of
from greensched_simulator.engine.queue.deciding import unstarted_job_of
from greensched_simulator.engine.state.choices import see_candidates
from greensched_simulator.engine.state.memory import starts_memory
from greensched_simulator.engine.state.observing import timing_at
from greensched_simulator.engine.state.starts import slot_columns
from greensched_simulator.environments.episode_parts import Bits, Shown


@borrowing
def observe_nodes(episode: Any, job: int, now_s: float, count: int, scratch: Scratch) -> None:
    """Show the first `count` nodes that the search for a job has found."""
    run, worker = episode.run, new_worker(job, now_s, episode.run)
    shown = NodesShown(episode.shown.nodes, episode.shown.context, True, True)
    rows = run.cluster.found[:count]
    see_candidates(run.cluster, rows, run.grid, run.terms, worker, scratch, shown)
    _clear_behind(episode.shown.nodes[0], count)


@fast
def observe_starts(episode: Any, job: int, now_s: float, count: int) -> None:
    """Show the next `count` starts of a job."""
    run, work = episode.run, unstarted_job_of(job, now_s, episode.run)
    memory = starts_memory(work.runtime_s.size, count, most_slots(work.runtime_s, run.terms.slot_s))
    columns, zone = slot_columns(run.grid, run.plan, run.terms, work, count, memory)
    table = episode.starts.columns
    table[0, :count], table[1, :count] = columns.wait_s[0], columns.runtime_s[0]
    table[2, :count], table[3, :count] = columns.carbon_at_start[0], columns.carbon_over_run[0]
    table[4, :count], table[5, :count] = columns.price_at_start[0], columns.price_over_run[0]
    table[6, :count] = columns.weighted_over_run[0]
    table[7, :count], table[8, :count] = columns.busiest_over_run[0], columns.completion[0]
    episode.starts.zone[:count] = zone
    workload = workload_columns_of(job, run.jobs, run.recorded, run.terms)
    left_s = run.jobs.deadline_s[job] - now_s
    asked = _to_make(workload, timing_at(now_s, left_s, run.terms), episode)
    features, context = encode_starts(columns, asked, coming_day_of(run.grid, now_s))
    _copy(features[0], episode.shown.slots[0])
    episode.shown.context[:] = context


@fast
def observe_power_caps(episode: Any, domain: int, node: int, now_s: float) -> None:
    """Show the power caps of a domain of a node with running jobs."""
    run = episode.run
    on_nodes, signals = needs_on_nodes(now_s, run), cap_signals(now_s, run, True)
    look_at_power_caps(domain, node, signals, on_nodes, run)
    show_power_caps(domain, node, signals, on_nodes, run)
    memory = run.caps_memory
    episode.power_caps[:] = memory.seen
    _copy(memory.features, episode.shown.power_caps[0])
    episode.shown.context[0] = memory.context


@fast
def _to_make(workload: WorkloadColumns, timing: Timing, episode: Any) -> DecisionToMake:
    terms = episode.run.terms
    return DecisionToMake(workload, terms.weights, terms.mean_memory, timing)


@inlined
def _copy(seen: Singles, shown: Singles) -> None:
    """Copy features [K,count] into [K,N], followed by zeros."""
    count = seen.shape[1]
    for row in range(seen.shape[0]):
        for place in range(count):
            shown[row, place] = seen[row, place]
    _clear_behind(shown, count)


@inlined
def _clear_behind(shown: Singles, count: int) -> None:
    """Set all but the first `count` candidates of features [K,N] to 0."""
    for row in range(shown.shape[0]):
        for place in range(count, shown.shape[1]):
            shown[np.uintp(row), np.uintp(place)] = 0.0


@inlined
def mark(is_choice: Bits, count: int) -> None:
    """Mark the first `count` columns as candidates."""
    for place in range(is_choice.size):
        is_choice[place] = 1 if place < count else 0


@inlined
def hide(shown: Shown) -> None:
    """Clear the observation of the last decision."""
    shown.nodes[:] = 0.0
    shown.slots[:] = 0.0
    shown.power_caps[:] = 0.0
    shown.context[:] = 0.0
