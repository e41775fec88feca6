"""What a GreenPolicy says of a world's jobs, by the operator's own functions."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from greensched_core.errors import BadInput
from greensched_operator.holding.hold_requests import HoldRequest
from greensched_operator.holding.holding import HoldTerms, due_s, hold_terms
from greensched_operator.objects.green_policy import BUILT_IN, GreenPolicy, Mode
from greensched_operator.planning.cluster_state import slowest_speeds
from greensched_operator.planning.work_power import LEAST_POWER_W
from greensched_operator.runtime.settings import OperatorSettings
from greensched_policies.costs.cost import Floats
from greensched_policies.costs.late_runs import price_of_lateness
from greensched_policies.kernel.plan import Plan
from greensched_policies.learned.model_fields import ONNX
from greensched_policies.library import functions as rows
from greensched_policies.planning.held_start import jitter_s, node_share
from greensched_policies.planning.outlook import SLOT_S
from greensched_policies.planning.planning import Thresholds
from greensched_simulator.engine.holding.hold import DEADLINE_S, BudgetTable, HoldTable, PauseTable
from greensched_simulator.engine.state.job_estimates import JobEstimates
from greensched_simulator.policy import (
    GREEN_POLICY,
    LEARNED,
    OPERATORS_PAUSE,
    USUAL_PAUSE,
    Policy,
)
from greensched_simulator.runs.busy_nodes import merit_orders, run_watts
from greensched_simulator.runs.learned_heads import learned_table
from greensched_simulator.runs.pausable_jobs import NOTHING_PAUSED, pause_table
from greensched_simulator.world.services import is_replica
from greensched_simulator.world.world import World

REPLAN_S = float(OperatorSettings.model_fields["replan_every_s"].default)
_JITTER_S = float(OperatorSettings.model_fields["release_jitter_s"].default)


def green_policy_of(world: World, policy: Policy) -> GreenPolicy | None:
    """Return the GreenPolicy that holds jobs; None if a rule chooses their starts.

    A learned policy decides within the scenario's GreenPolicy, or else within the built-in one with
    the scenario's weights. Raises BadInput if `green-policy` is to hold jobs and the scenario names
    none, and for a pause rule that the operator does not have.
    """
    if not policy.is_held:
        return None
    if policy.pause not in (USUAL_PAUSE, OPERATORS_PAUSE):
        raise BadInput(
            f"{policy.label}: the operator pauses by {OPERATORS_PAUSE} alone; name it instead of "
            f"{policy.pause}, or leave it out: then {GREEN_POLICY} runs each job in one piece"
        )
    if policy.when == LEARNED:
        given = world.green_policy or replace(BUILT_IN, mode=Mode.ENFORCE, weights=world.weights)
        return replace(given, when_policy=ONNX)
    if world.green_policy is None:
        raise BadInput(
            f"scenario {world.name} names no GreenPolicy, which {policy.label} runs: add "
            "`green_policy: policy.yaml`, the file that users apply"
        )
    return world.green_policy


def hold_table(
    world: World,
    policy: GreenPolicy,
    estimates: JobEstimates,
    *,
    pauses: bool = False,
    replan_every_s: float = REPLAN_S,
) -> HoldTable:
    """Return the hold terms of a world's jobs; `pauses`: those that can be suspended may be."""
    jobs, found = world.jobs, _judged(world, policy, estimates)
    power_w, asked = run_watts(world) * jobs.workers[:, None], _asked(world, policy, found)
    rolls_s = np.unique(world.grids.times_s[world.grids.times_s > 0.0])
    paused = pause_table(world, policy, found, estimates) if pauses else NOTHING_PAUSED
    until_s = _last_start_s(asked[rows.LATEST_S], paused)
    quiet_s = _quiet_s(world, policy, until_s)
    asked[rows.FROM_S], asked[rows.QUIET] = -np.inf, 0.0 if quiet_s.size else rows.NEVER_QUIET
    replans_s = np.union1d(rolls_s, _every(replan_every_s, until_s))
    return HoldTable(
        may_wait=np.array([each is not None for each in found], np.int64),
        asked=asked,
        power_w=np.maximum(power_w, LEAST_POWER_W),
        jitter_s=np.array([jitter_s(name, _JITTER_S, SLOT_S) for name in world.job_names]),
        quiet_s=quiet_s,
        held_share=policy.max_held_share,
        replans_s=replans_s,
        is_whole=np.isin(replans_s, rolls_s).astype(np.int64),
        budget=_budget_table(world, policy, until_s),
        pauses=paused,
        learned=learned_table(world, found),
    )


def _every(seconds: float, until_s: float) -> Floats:
    """Return the times at which held jobs are planned again, whatever the grid does."""
    return np.arange(seconds, until_s + seconds, seconds)


def _asked(world: World, policy: GreenPolicy, found: Sequence[HoldTerms | None]) -> Floats:
    """Return the numbers of the jobs that the kernel takes, [ASKED,J], but for quiet spans."""
    jobs, begin_s = world.jobs, world.start_s
    asked = np.empty((rows.ASKED, len(found)))
    asked[rows.LATEST_S] = [0.0 if one is None else one.latest_start_s - begin_s for one in found]
    asked[rows.CPU_CORES] = jobs.cpu_cores * jobs.workers
    asked[rows.GPUS] = jobs.gpus * jobs.workers
    asked[rows.BY_CARBON], asked[rows.BY_PRICE] = policy.weights.carbon, policy.weights.cost
    asked[rows.BY_TIME] = policy.weights.performance
    asked[rows.PRICE_PER_G], asked[rows.AT_ARRIVAL_G] = policy.carbon_price_per_g, np.inf
    asked[rows.KEPT_S], asked[rows.LEAST_SAVING] = np.nan, policy.least_saving
    asked[rows.LEAST_CHANGE] = Thresholds().least_change
    asked[rows.WAITS_FOR_ROOM] = policy.waits_for_room
    asked[rows.MEMORY_BYTES] = jobs.memory_bytes * jobs.workers
    asked[rows.STAYS_IN], asked[rows.STAYS_FROM_S : rows.SPARE_S] = rows.NO_ZONE_YET, 0.0
    asked[rows.SPARE_S] = [0.0 if one is None else one.spare_s for one in found]
    asked[rows.NODE_SHARE] = _node_shares(world)
    asked[rows.DUE_S] = [np.inf if one is None else due_s(one, policy) - begin_s for one in found]
    asked[rows.RUNTIME_ERROR] = policy.runtime_error
    asked[rows.LATE_PRICE] = price_of_lateness(policy.on_time_target)
    return asked


def _last_start_s(latest_s: Floats, paused: PauseTable) -> float:
    """Return when the last job starts or is resumed, at the latest."""
    ends_s = paused.numbers[DEADLINE_S, paused.may_pause == 1]
    return max(float(latest_s.max(initial=0.0)), float(ends_s.max(initial=0.0)))


def plan_with(plan: Plan, world: World, table: HoldTable) -> Plan:
    """Return an empty plan that ends after all jobs that may wait: cores, GPUs, memory, merit."""
    longest_s = float(world.jobs.estimate_s.max(initial=0.0))
    end_s = float(table.asked[rows.LATEST_S].max(initial=0.0)) + longest_s
    zones, nodes = plan.capacity.size, world.nodes
    slots = max(plan.cores.shape[1], int(end_s // SLOT_S) + 2)
    gpus = np.bincount(nodes.zone, nodes.gpu_capacity, zones).astype(float)
    gpu_slots = slots if gpus.any() else 0
    memory = np.bincount(nodes.zone, nodes.memory_capacity, zones).astype(float)
    return Plan(
        np.zeros((zones, slots)), plan.capacity, np.zeros((zones, gpu_slots)), gpus,
        np.zeros((zones, slots)), memory, merit_orders(world),
    )  # fmt: skip


def _judged(world: World, policy: GreenPolicy, estimates: JobEstimates) -> list[HoldTerms | None]:
    """Return each job's hold terms, [J]; None if it may not wait."""
    jobs, found = world.jobs, list[HoldTerms | None]()
    nodes = world.nodes
    speeds = slowest_speeds(zip(nodes.speed.tolist(), nodes.gpu_capacity.tolist(), strict=True))
    columns = (jobs.arrival_s, jobs.estimate_s, estimates.latest_end_s, jobs.gpus, is_replica(jobs))
    for arrival_s, runtime_s, end_s, gpus, is_served in zip(
        *map(np.ndarray.tolist, columns), strict=True
    ):
        request = HoldRequest(
            world.start_s + arrival_s,
            deadline_s=world.start_s + end_s if end_s < np.inf else None,
            runtime_s=runtime_s,
        )
        speed = speeds[gpus > 0.0]
        terms = None if is_served else hold_terms(request, policy, slowest_speed=speed)
        found.append(terms if isinstance(terms, HoldTerms) else None)
    return found


def _node_shares(world: World) -> list[float]:
    """Return the share of the largest node that one pod of each job requests, [J]."""
    jobs, nodes = world.jobs, world.nodes
    largest = float(nodes.cpu_capacity.max()), float(nodes.memory_capacity.max())
    needs = zip(jobs.cpu_cores.tolist(), jobs.memory_bytes.tolist(), strict=True)
    return [node_share(*each, largest) for each in needs]


def _budget_table(world: World, policy: GreenPolicy, until_s: float) -> BudgetTable:
    """Return the budget of all jobs together, as of one namespace, with its periods by UTC."""
    if policy.budget is None:
        return BudgetTable(np.inf, np.inf, np.zeros(0))
    ends_s = [policy.budget.period.span(world.start_s).end]
    while ends_s[-1] <= world.start_s + until_s:
        ends_s.append(policy.budget.period.span(ends_s[-1]).end)
    return BudgetTable(
        policy.budget.most_kwh, policy.budget.most_kg, np.array(ends_s) - world.start_s
    )


def _quiet_s(world: World, policy: GreenPolicy, until_s: float) -> Floats:
    """Return begins and ends of the spans in which nothing starts, [2,1,Q]."""
    begin_s = world.start_s
    if not policy.quiet_hours.windows:
        return np.zeros((2, 1, 0))
    spans = policy.quiet_hours.spans(begin_s, begin_s + until_s + SLOT_S)
    return np.array(spans, float).reshape(-1, 2).T[:, None].copy() - begin_s
