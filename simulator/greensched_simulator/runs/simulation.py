"""Runs a world under a policy, and bills the recorded schedule."""

import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numba.core.errors import NumbaExperimentalFeatureWarning

from greensched_core.errors import BadInput
from greensched_operator.objects.green_policy import BUILT_IN
from greensched_policies.billing.accounting import Bill, add_transfers, bill_schedule
from greensched_policies.billing.supply import Balance, SolarPlant, balances_of, imported
from greensched_policies.billing.timelines import BilledNodes, ZoneSeries
from greensched_policies.costs.cost import CostModel, Floats
from greensched_policies.costs.scaling import NO_SCALING
from greensched_policies.library.grid_table import GridTable
from greensched_policies.planning.outlook import SLOT_S
from greensched_policies.rules.catalogue import BLIND_TO_ROOM, MAY_REJECT, SCALE_RULES
from greensched_simulator.arrays.jobs import JobArrays
from greensched_simulator.engine.engine import run
from greensched_simulator.engine.holding.held_run import run_held
from greensched_simulator.engine.run import DISCIPLINES, Given
from greensched_simulator.engine.state.autoscaler import SCAN_INTERVAL_S
from greensched_simulator.engine.state.choices import nodes_to_score, rules_of
from greensched_simulator.engine.state.cluster import idle_cluster, node_table
from greensched_simulator.engine.state.job_estimates import JobEstimates, estimates_of
from greensched_simulator.engine.state.power_states import WAKE_S
from greensched_simulator.engine.state.terms import RunConfig
from greensched_simulator.policy import LEARNED, QUEUES, USUAL_CAP, Policy
from greensched_simulator.runs.busy_nodes import run_watts
from greensched_simulator.runs.hold_terms import green_policy_of, hold_table, plan_with
from greensched_simulator.runs.job_transfers import transfers_of
from greensched_simulator.runs.learned_heads import LearnedHeads, heads_of, when_rule_of
from greensched_simulator.runs.looking_ahead import (
    empty_plan,
    forecast_of,
    green_policy_pauses,
    looks_ahead,
    may_suspend,
)
from greensched_simulator.runs.replica_use import billed_placements
from greensched_simulator.runs.schedule import Schedule, schedule_of
from greensched_simulator.runs.sleep_tables import sleep_table
from greensched_simulator.world.world import World
from greensched_simulator.world.zone_grids import relative_pue


class MissingData(BadInput):
    """A grid has no data for a part of the time that is billed."""


ProgressCallback = Callable[[Policy, int], None]  # the policy and the seed whose run has just ended


class TimedSchedule(NamedTuple):
    """A schedule, and the wall seconds that the compiled engine took for it; not reproducible."""

    schedule: Schedule
    engine_s: float


def simulate(world: World, policy: Policy, heads: LearnedHeads | None = None) -> Schedule:
    """Return the schedule of a world under `policy`; the same world gives the same bytes.

    `heads` decide in place of those in the policy's bundle.
    """
    heads = heads_of(world, policy) if heads is None else heads
    with _quiet():
        return _simulated(world, policy, heads, _forecasts(world, [policy])).schedule


def simulate_each(
    world: World, policies: Sequence[Policy], on_end: ProgressCallback
) -> list[TimedSchedule]:
    """Return the schedule of each policy, as `simulate` does; call `on_end` after each run.

    One run per core at a time: compiled code does not hold the interpreter's lock.
    """
    forecasts, heads = _forecasts(world, policies), [heads_of(world, each) for each in policies]
    with _quiet(), ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = {
            pool.submit(_simulated, world, policy, nets, forecasts): policy
            for policy, nets in zip(policies, heads, strict=True)
        }
        try:
            for each in as_completed(runs):
                each.result()
                on_end(runs[each], world.seed)
        finally:
            pool.shutdown(cancel_futures=True)
    return [each.result() for each in runs]


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence numba's warning that calling rules uses an experimental feature."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumbaExperimentalFeatureWarning)
        yield


def _forecasts(world: World, policies: Sequence[Policy]) -> dict[bool, GridTable]:
    """Return the forecasts by whether policies look ahead; policies share them."""
    ahead = {looks_ahead(world, policy) for policy in policies}
    return {each: forecast_of(world, in_slots=each) for each in ahead}


def _simulated(
    world: World, policy: Policy, heads: LearnedHeads, forecasts: dict[bool, GridTable]
) -> TimedSchedule:
    sleep, green = sleep_table(world, policy), green_policy_of(world, policy)
    given = _given(world, policy, sleep, forecasts[looks_ahead(world, policy)])
    held = (
        None
        if green is None
        else hold_table(
            world, green, given.estimates,
            when_net=heads.when, pauses=green_policy_pauses(world, policy),
        )
    )  # fmt: skip
    if held is not None:
        given = given._replace(plan=plan_with(given.plan, world, held))
    when, order = policy.when if green is None else when_rule_of(green), QUEUES[policy.queue].order
    rules = rules_of(when, policy.placing.rule, order, policy.cap_rule, policy.pause)
    rules = rules._replace(where_net=heads.where, cap_net=heads.how_fast)
    inputs = (given, rules) if held is None else (given, rules, held)
    engine = _engine_for(run if held is None else run_held, inputs)
    began_s = time.perf_counter()
    recorded, changes, suspended, broken, off = engine(*inputs)
    engine_s = time.perf_counter() - began_s
    schedule = schedule_of(world, recorded, changes, suspended, broken, sleep, off)
    return TimedSchedule(schedule, engine_s)


def _given(world: World, policy: Policy, sleep: Floats, forecast: GridTable) -> Given:
    """Return the inputs of a run, with an empty plan."""
    cluster = idle_cluster(
        world.nodes, node_table(world.nodes), world.jobs.gpus, sleep, world.curve_watts,
        capped=policy.cap != USUAL_CAP, only_node_0=policy.placing.only_node_0,
    )  # fmt: skip
    estimates = estimates_in(world, sleep)
    return Given(
        jobs=planned_jobs(world, estimates),
        precedence=world.precedence,
        estimates=estimates,
        cluster=cluster,
        grid=forecast,
        plan=empty_plan(world, is_looked_at=looks_ahead(world, policy)),
        terms=run_config_of(world, policy),
        steps_s=steps_watched(world, policy),
        outages=world.outages,
        autoscaled=world.autoscaled,
    )


def _engine_for(engine: Any, inputs: tuple[Any, ...]) -> Callable[..., Any]:
    """Return the engine's machine code, so that compiling or loading it is not timed."""
    whole = engine.whole
    compiled: Callable[..., Any] = whole.compile((*map(whole.typeof_pyval, inputs),))
    return compiled


def estimates_in(world: World, sleep: Floats) -> JobEstimates:
    """Return the job estimates of a world whose nodes sleep by the table `sleep`."""
    wake_s = sleep[WAKE_S] if sleep.shape[1] else np.zeros(world.nodes.zone.size)
    if world.autoscaled.group.size:
        start_s = SCAN_INTERVAL_S + world.autoscaled.wake_s
        wake_s = np.where(world.autoscaled.group >= 0, start_s, wake_s)
    zones = len(world.zones)
    found = estimates_of(world.jobs, world.precedence, world.nodes, zones, wake_s, world.links)
    none_can = np.isinf(found.runtime_s)
    run_j = np.where(none_can, np.inf, run_watts(world) * np.where(none_can, 0.0, found.runtime_s))
    return found._replace(run_j=run_j)


def planned_jobs(world: World, estimates: JobEstimates) -> JobArrays:
    """Return a world's jobs with deadlines early enough for the jobs that wait for them."""
    return world.jobs._replace(deadline_s=estimates.latest_end_s)


def steps_watched(world: World, policy: Policy) -> Floats:
    """Return the times at which any grid changes; none if no rule of the policy reads them."""
    is_provisioned = QUEUES[policy.queue].discipline == "provisioned"
    if policy.cap == USUAL_CAP and not is_provisioned:
        return np.zeros(0)
    return grid_steps(world)


def grid_steps(world: World) -> Floats:
    """Return the times at which any grid changes, in order."""
    steps_s: Floats = np.unique(world.grids.times_s)
    return steps_s


def billed_until_s(world: World, *schedules: Schedule) -> float:
    """Return the end of the window that makes the bills of some schedules comparable.

    It is the later of the scenario's length and the last job's end under any schedule. Idle nodes
    draw power, so all schedules must be billed for the same time. No job arrives after it.
    """
    last_s = max(float(np.nanmax(schedule.end_s, initial=0.0)) for schedule in schedules)
    return max(world.length_s, last_s, float(world.jobs.arrival_s.max(initial=0.0)))


def bill_of(world: World, schedule: Schedule, until_s: float) -> Bill:
    """Return the bill of a schedule from 0 to `until_s`, by the grids' true values.

    Charges for jobs that never ran are not included. Raises MissingData if a grid has no data for a
    time that is billed.
    """
    bill = bill_schedule(
        billed_nodes_of(world),
        billed_placements(world, schedule),
        billed_series(world, schedule, until_s),
        (0.0, until_s),
        cost_model(world),
        schedule.off,
        schedule.caps,
    )
    bill = add_transfers(bill, transfers_of(world, schedule), world.nodes.zone, zone_series(world))
    _refuse_gaps(world, bill, until_s)
    return bill


def zone_balances(world: World, schedule: Schedule, until_s: float) -> list[Balance | None]:
    """Return the sources of each zone's watts until `until_s`; None for a zone without panels.

    Raises MissingData if the yield of panels is not known.
    """
    if not any(world.batteries):
        return [None] * len(world.zones)
    grids, plants = world.grids, list[SolarPlant | None]()
    for zone, battery in enumerate(world.batteries):
        own = slice(*grids.starts[zone : zone + 2])
        plants.append(None if battery is None else SolarPlant(grids.solar_w[own], battery))
    balances = balances_of(
        billed_nodes_of(world),
        billed_placements(world, schedule),
        list(zip(zone_series(world), plants, strict=True)),
        (0.0, until_s),
        cost_model(world),
        schedule.off,
        schedule.caps,
    )
    for zone, balance in enumerate(balances):
        if balance is not None and np.isnan(balance.yield_w).any():
            raise _gap(world, world.zones[zone], "sun", until_s)
    return balances


def billed_series(world: World, schedule: Schedule, until_s: float) -> tuple[ZoneSeries, ...]:
    """Return the series by which each zone's joules are billed, for the part that is imported."""
    balances = zone_balances(world, schedule, until_s)
    return tuple(imported(*each) for each in zip(zone_series(world), balances, strict=True))


def billed_nodes_of(world: World) -> BilledNodes:
    """Return the world's nodes in the form that the bill takes."""
    nodes = world.nodes
    return BilledNodes(
        nodes.cpu_capacity,
        nodes.curve_class.astype(np.int64),
        nodes.gpu_capacity,
        nodes.gpu_idle_w,
        nodes.gpu_peak_w,
        nodes.pue,
        nodes.zone,
    )


def cost_model(world: World) -> CostModel:
    """Return the assumptions on power that cost and bill share."""
    return CostModel(
        world.curve_watts, world.utilisation_ratio, world.gpu_ratio, world.empty_nodes_sleep
    )


def zone_series(world: World) -> tuple[ZoneSeries, ...]:
    """Return the true carbon, price and relative PUE of each zone."""
    grids = world.grids
    bounds = [slice(*pair) for pair in zip(grids.starts[:-1], grids.starts[1:], strict=True)]
    return tuple(
        ZoneSeries(
            grids.times_s[own],
            grids.carbon_g_per_kwh[own],
            grids.price_per_mwh[own],
            relative_pue(grids)[own],
        )
        for own in bounds
    )


def _refuse_gaps(world: World, bill: Bill, until_s: float) -> None:
    for signal, parts in (
        ("temperature", (bill.energy_active_j, bill.energy_idle_j, bill.energy_sleep_j,
                         bill.energy_wake_j)),
        ("carbon", (bill.carbon_active_g, bill.carbon_idle_g, bill.carbon_sleep_g,
                    bill.carbon_wake_g)),
        ("price", (bill.cost_active, bill.cost_idle, bill.cost_sleep, bill.cost_wake)),
    ):  # fmt: skip
        unknown = np.isnan(np.stack(parts)).any(axis=0)
        if unknown.any():
            zone = world.zones[world.nodes.zone[int(np.argmax(unknown))]]
            raise _gap(world, zone, signal, until_s)
    if np.isnan(bill.carbon_transfer_g).any():
        zone = world.zones[world.nodes.zone[int(np.argmax(np.isnan(bill.carbon_transfer_g)))]]
        raise _gap(world, f"{zone}, or a zone from which its data came,", "carbon", until_s)


def _gap(world: World, zone: str, signal: str, until_s: float) -> MissingData:
    return MissingData(
        f"scenario {world.name}: {zone} lacks {signal} for a part of the "
        f"{until_s / 3600.0:.0f} h that are billed: give a file without gaps that lasts until "
        f"the last job ends, or a shorter length"
    )


def run_config_of(world: World, policy: Policy) -> RunConfig:
    """Return the constants of a policy's run."""
    placing, green = policy.placing, green_policy_of(world, policy)
    judged = green or BUILT_IN
    return RunConfig(
        discipline=DISCIPLINES.index(QUEUES[policy.queue].discipline),
        slot_s=SLOT_S,
        nodes_to_score=1 if placing.stops_at_first else nodes_to_score(world.nodes.zone.size),
        weights=(green or world).weights,
        model=cost_model(world),
        sees_room=policy.where == LEARNED or placing.rule not in BLIND_TO_ROOM,
        goes_on=placing.goes_on,
        may_reject=policy.when in MAY_REJECT,
        may_suspend=may_suspend(world, policy),
        caps_package_power=world.caps_package_power,
        scaling=world.scaling if policy.pause in SCALE_RULES else NO_SCALING,
        links=world.links,
        may_hold=policy.is_held,
        may_pause=green_policy_pauses(world, policy),
        begin_s=world.start_s,
        runtime_error=judged.runtime_error,
        on_time_target=judged.on_time_target,
        mean_memory=float(world.nodes.memory_capacity.mean()),
    )
