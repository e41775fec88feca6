"""The data that all episodes in a world share, and the initial parts of an episode."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from greensched_core.errors import BadInput
from greensched_policies.billing.accounting import total_bill
from greensched_policies.costs.capping import POWER_CAPS, CapColumns
from greensched_policies.costs.cost import Floats
from greensched_policies.encoding.reward import Shares, penalty_of, reward_of, shares_of
from greensched_policies.encoding.slots import SlotColumns
from greensched_policies.library.functions import MOST_STARTS
from greensched_policies.library.grid_table import GridTable
from greensched_policies.rules.catalogue import MAY_REJECT
from greensched_simulator.arrays.jobs import JobArrays
from greensched_simulator.engine.queue.deciding import OVER
from greensched_simulator.engine.run import Broken, CapChanges, Given, Suspended
from greensched_simulator.engine.state.autoscaler import OffSpans
from greensched_simulator.engine.state.choices import NOWHERE, RuleSet, nodes_to_score, rules_of
from greensched_simulator.engine.state.cluster import ClusterState, idle_cluster, node_table
from greensched_simulator.engine.state.job_estimates import JobEstimates
from greensched_simulator.engine.state.recorded import Recorded, nothing_recorded
from greensched_simulator.engine.state.terms import RunConfig
from greensched_simulator.environments.episode_parts import (
    Accounts,
    Machines,
    Parts,
    Shown,
    Starts,
)
from greensched_simulator.policy import (
    BASELINE,
    GREEN_POLICY,
    QUEUES,
    USUAL_CAP,
    Policy,
    policy_named,
)
from greensched_simulator.runs.looking_ahead import empty_plan, forecast_of, looks_ahead
from greensched_simulator.runs.run_inputs import (
    estimates_in,
    grid_steps,
    planned_jobs,
    run_config_of,
    steps_watched,
)
from greensched_simulator.runs.schedule import Schedule, schedule_of
from greensched_simulator.runs.simulation import bill_of, billed_until_s, simulate
from greensched_simulator.runs.sleep_tables import sleep_table
from greensched_simulator.world.world import World, idle_watts

HeadName = Literal["when", "where", "how_fast"]  # what an agent decides; rules decide the rest
HEAD_NAMES: tuple[HeadName, ...] = ("when", "where", "how_fast")  # as `deciding` numbers them


@dataclass(frozen=True, slots=True)
class Prepared:
    """A world under a policy, with all data that its episodes share."""

    world: World
    policy: Policy
    heads: Sequence[HeadName]
    jobs: JobArrays  # as plans see them
    node_table: Floats  # constant properties of the nodes: see `ClusterState`
    sleep: Floats  # the table at the start
    estimates: JobEstimates
    is_ahead_seen: bool  # whether a rule or agent uses later starts, and so the plan
    grid: GridTable  # the forecast
    true_grid: GridTable
    steps_s: Floats  # times at which any grid changes, if a rule needs them
    terms: RunConfig
    machines: Machines
    shares: Shares
    least_until_s: float  # the bill covers at least the time that the baseline's does

    @property
    def has_fast_bill(self) -> bool:
        """Return whether the compiled fast bill covers all that the accounting bills."""
        is_plain = not self.is_capped and not self.terms.may_suspend
        is_plain &= not self.world.batteries and not self.nodes_fail and not self.world.links.size
        is_plain &= not self.world.services and not self.world.autoscaled.group.size
        return is_plain and not self.has_gangs

    @property
    def is_capped(self) -> bool:
        """Return whether a rule or an agent sets power caps."""
        return self.policy.cap != USUAL_CAP or "how_fast" in self.heads

    @property
    def nodes_fail(self) -> bool:
        """Return whether any node ever fails."""
        return self.world.outages.node.size > 0

    @property
    def has_gangs(self) -> bool:
        """Return whether any job has several workers."""
        return bool(self.jobs.workers.max() > 1.0)

    @property
    def most_nodes(self) -> int:
        """Return the most nodes of a decision."""
        return nodes_to_score(self.world.nodes.zone.size)

    @property
    def most_starts(self) -> int:
        """Return the most starts of a decision."""
        waits_s = self.estimates.latest_start_s - self.world.jobs.arrival_s
        return int(np.clip(waits_s.max() // self.terms.slot_s + 1, 1, MOST_STARTS))


def prepared(world: World, policy: Policy, heads: Sequence[HeadName]) -> Prepared:
    """Return a world ready for episodes in which an agent decides `heads`, a policy the rest.

    Raises BadInput for policies, heads and worlds that environments do not support, and if a grid
    lacks data for a time that is billed.
    """
    _refuse(world, policy, heads)
    sleep, nodes = sleep_table(world, policy), world.nodes
    estimates = estimates_in(world, sleep)
    baseline = simulate(world, policy_named(BASELINE))
    until_s = billed_until_s(world, baseline)
    total = total_bill(bill_of(world, baseline, until_s))
    ahead = "when" in heads or looks_ahead(world, policy)
    is_capped = "how_fast" in heads
    return Prepared(
        world=_plain(world),
        policy=policy,
        heads=heads,
        jobs=_plain(planned_jobs(world, estimates)),
        node_table=node_table(nodes),
        sleep=sleep,
        estimates=_plain(estimates),
        is_ahead_seen=ahead,
        grid=_plain(forecast_of(world, in_slots=ahead)),
        true_grid=_plain(forecast_of(_foreseen(world), in_slots=False)),
        steps_s=_plain(grid_steps(world) if is_capped else steps_watched(world, policy)),
        terms=_plain(run_config_of(world, policy)._replace(asks_how_fast=is_capped)),
        machines=_plain(Machines(idle_watts(world), nodes.sleep_w, nodes.wake_w)),
        shares=shares_of(
            world.weights,
            total.cost,
            total.carbon_g,
            int(np.isfinite(world.jobs.deadline_s).sum()),
        ),
        least_until_s=until_s,
    )  # fmt: skip


def new_parts(ready: Prepared, shown: Shown) -> Parts:
    """Return the parts of a new episode, which writes its observations to `shown`."""
    world, jobs, count = ready.world, ready.jobs, ready.jobs.arrival_s.size
    shown.asked[:] = OVER, NOWHERE, 0, NOWHERE, 0, NOWHERE, NOWHERE, NOWHERE
    shown.reward[:] = 0.0
    cluster = idle_cluster(
        world.nodes, ready.node_table, jobs.gpus, ready.sleep.copy(), world.curve_watts,
        capped=ready.is_capped, only_node_0=ready.policy.placing.only_node_0,
    )  # fmt: skip
    return Parts(
        given=Given(
            jobs=jobs,
            precedence=world.precedence,
            estimates=ready.estimates,
            cluster=cluster,
            grid=ready.grid,
            plan=empty_plan(world, is_looked_at=ready.is_ahead_seen),
            terms=ready.terms,
            steps_s=ready.steps_s,
            outages=world.outages,
            autoscaled=world.autoscaled,
        ),
        recorded=_nothing_in(ready, cluster),
        starts=_no_starts(shown.slots.shape[2]),
        power_caps=np.ones((len(CapColumns._fields), POWER_CAPS.size)),
        accounts=Accounts(
            ready.true_grid,
            ready.machines,
            ready.shares,
            ready.least_until_s,
            np.zeros(count),
            world.jobs.deadline_s,
            ready.has_fast_bill,
        ),
        shown=shown,
        asks_when="when" in ready.heads,
        asks_where="where" in ready.heads,
        most_nodes=ready.most_nodes,
    )


def _no_starts(most: int) -> Starts:
    return Starts(np.zeros((len(SlotColumns._fields), most)), np.zeros(most, np.int64))


def _nothing_in(ready: Prepared, cluster: ClusterState) -> Recorded:
    """Return the record of a new episode, with room for the placing of each worker."""
    recorded = nothing_recorded(ready.jobs, cluster, ready.terms, ready.nodes_fail)
    workers = ready.jobs.arrival_s.size + recorded.others.shape[1]
    return recorded._replace(placings=np.zeros((1 + workers, 2)))


def schedule_in(
    ready: Prepared,
    parts: Parts,
    changes: CapChanges,
    suspended: Suspended,
    broken: Broken,
    off: OffSpans,
) -> Schedule:
    """Return what an episode has recorded so far."""
    sleep = parts.given.cluster.sleep
    return schedule_of(ready.world, parts.recorded, changes, suspended, broken, sleep, off)


def reward_of_bill(ready: Prepared, ran: Schedule) -> float:
    """Return the reward of a whole schedule, from the full accounting.

    Raises BadInput if a grid lacks data for a time that is billed.
    """
    until_s = max(ready.least_until_s, billed_until_s(ready.world, ran))
    total = total_bill(bill_of(ready.world, ran, until_s))
    penalty = float(penalty_of(ran.end_s, ready.world.jobs.deadline_s).sum())
    return reward_of(total.cost, total.carbon_g, penalty, ready.shares)


def rules_for(policy: Policy) -> RuleSet:
    """Return the rules that take all other decisions, and replace invalid actions."""
    order = QUEUES[policy.queue].order
    return rules_of(policy.when, policy.placing.rule, order, policy.cap, policy.pause)


def _foreseen(world: World) -> World:
    """Return the world with perfect forecasts."""
    grids = world.grids
    return world._replace(
        grids=grids._replace(
            forecast_carbon_g_per_kwh=grids.carbon_g_per_kwh,
            forecast_price_per_mwh=grids.price_per_mwh,
        )
    )


def _refuse(world: World, policy: Policy, heads: Sequence[HeadName]) -> None:
    """Raise BadInput for policies and heads that environments do not support."""
    for head in heads:
        if head not in HEAD_NAMES:
            raise BadInput(f"there is no head {head!r}: give one of {', '.join(HEAD_NAMES)}")
    for is_given, what, instead in (
        (
            "where" in heads and QUEUES[policy.queue].discipline == "together",
            f"where jobs of the queue {policy.queue} run, because it chooses all their nodes at "
            f"once",
            "another queue, or another head",
        ),
        (
            policy.when in MAY_REJECT,
            f"with {policy.when}, because it rejects jobs",
            "another when rule",
        ),
        (
            policy.when == GREEN_POLICY,
            f"with {policy.when}, which plans held jobs again and again",
            "a when rule",
        ),
        (
            policy.bundle != "",
            f"with {policy.label}, whose heads decide already",
            "rules",
        ),
        (
            "where" in heads and policy.placing.only_node_0,
            f"with {policy.where}, because it leaves nothing to choose",
            "another where rule",
        ),
    ):
        if is_given:
            raise BadInput(f"agents cannot decide {what}: use {instead}")


def _plain(columns: Any) -> Any:
    """Return arrays, or tuples of them, contiguous and writable: one numba type for all worlds."""
    if isinstance(columns, np.ndarray):
        return np.require(columns, requirements=["C", "W"])
    if hasattr(columns, "_make"):
        return columns._make(_plain(each) for each in columns)
    return columns
