"""Runs a world under a policy, and bills the recorded schedule."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

import numpy as np

from greensched_core.errors import BadInput
from greensched_policies.billing.accounting import Bill, add_transfers, bill_schedule
from greensched_policies.billing.supply import Balance, SolarPlant, balances_of, imported
from greensched_policies.billing.timelines import BilledNodes, ZoneSeries
from greensched_simulator.policy import Policy
from greensched_simulator.runs.job_transfers import transfers_of
from greensched_simulator.runs.learned_heads import LearnedHeads, heads_of
from greensched_simulator.runs.ready_run import ReadyRun, TimedSchedule, ready_runs
from greensched_simulator.runs.replica_use import billed_placements
from greensched_simulator.runs.run_inputs import cost_model
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.world.world import World
from greensched_simulator.world.zone_grids import relative_pue


class MissingData(BadInput):
    """A grid has no data for a part of the time that is billed."""


ProgressCallback = Callable[[Policy, int], None]  # the policy and the seed whose run has just ended


def simulate(world: World, policy: Policy, heads: LearnedHeads | None = None) -> Schedule:
    """Return the schedule of a world under `policy`; the same world gives the same bytes.

    `heads` decide in place of those in the policy's bundle.
    """
    return ReadyRun(world, policy).run(heads).schedule


def simulate_each(
    world: World, policies: Sequence[Policy], on_end: ProgressCallback
) -> list[TimedSchedule]:
    """Return the schedule of each policy, as `simulate` does; call `on_end` after each run.

    One run per core at a time: compiled code does not hold the interpreter's lock.
    """
    heads = [heads_of(world, each) for each in policies]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = {
            pool.submit(ready.run, nets): policy
            for ready, policy, nets in zip(
                ready_runs(world, policies), policies, heads, strict=True
            )
        }
        try:
            for each in as_completed(runs):
                each.result()
                on_end(runs[each], world.seed)
        finally:
            pool.shutdown(cancel_futures=True)
    return [each.result() for each in runs]


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
