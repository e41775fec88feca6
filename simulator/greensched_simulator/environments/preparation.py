"""What all episodes in a world share, and the scene that an episode of it begins with."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from greensched_core.errors import BadInput
from greensched_policies.accounting import total_bill
from greensched_policies.catalogue import MAY_REJECT
from greensched_policies.cost import Floats
from greensched_policies.reward import Shares, shares_of
from greensched_simulator.choices import NOWHERE, Rules, Terms, rules_of
from greensched_simulator.engine import OVER
from greensched_simulator.environments.scene_parts import Accounts, Parts, Shown, Starts
from greensched_simulator.environments.tally import Machines
from greensched_simulator.events import nothing_yet
from greensched_simulator.grid_table import GridTable, grid_table
from greensched_simulator.policy import (
    BASELINE,
    QUEUES,
    USUAL_CAP,
    USUAL_QUEUE,
    Policy,
    policy_named,
)
from greensched_simulator.prospects import Prospects
from greensched_simulator.recorded import nothing_recorded
from greensched_simulator.schedule import Schedule, schedule_of
from greensched_simulator.simulation import (
    bill_of,
    billed_until_s,
    empty_plan,
    forecast_of,
    idle_cluster,
    may_suspend,
    prospects_in,
    simulate,
    terms_of,
)
from greensched_simulator.sleep_tables import sleep_table
from greensched_simulator.starts import MOST_SLOTS
from greensched_simulator.waiting import nobody_waiting
from greensched_simulator.world import World, idle_watts
from greensched_simulator.zone_grids import relative_pue

Heads = Literal["when", "where", "both"]  # what an agent decides; rules decide the rest
HEADS: tuple[Heads, ...] = ("when", "where", "both")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A world under a policy with all that its episodes share."""

    world: World
    policy: Policy
    sleep: Floats  # the table as it is at the start
    prospects: Prospects
    grid: GridTable  # the forecast
    true_grid: GridTable
    terms: Terms
    machines: Machines
    shares: Shares
    least_until_s: float  # the bill reaches at least to where it would if all started at once

    @property
    def most_nodes(self) -> int:
        """Return how many nodes a decision has to choose from at most."""
        return min(self.terms.nodes_to_score, self.world.nodes.zone.size)

    @property
    def most_starts(self) -> int:
        """Return how many starts a decision has to choose from at most."""
        waits_s = self.prospects.latest_start_s - self.world.jobs.arrival_s
        return int(np.clip(waits_s.max() // self.terms.slot_s + 1, 1, MOST_SLOTS))


def prepared(world: World, policy: Policy, heads: Heads) -> Prepared:
    """Return a world ready for episodes in which an agent decides `heads`, a policy the rest.

    Raises BadInput for policies and worlds that cannot be stepped through, and where a grid lacks
    data for a time that is billed.
    """
    _refuse(world, policy, heads)
    sleep, nodes, grids = sleep_table(world, policy), world.nodes, world.grids
    pue = relative_pue(grids)
    baseline = simulate(world, policy_named(BASELINE))
    until_s = billed_until_s(world, baseline)
    total = total_bill(bill_of(world, baseline, until_s))
    return Prepared(
        world=_plain(world),
        policy=policy,
        sleep=sleep,
        prospects=_plain(prospects_in(world, sleep)),
        grid=_plain(forecast_of(world)),
        true_grid=_plain(
            grid_table(
                grids.starts, grids.times_s, grids.carbon_g_per_kwh * pue, grids.price_per_mwh * pue
            )
        ),
        terms=_plain(terms_of(world, policy)),
        machines=_plain(Machines(idle_watts(world), nodes.sleep_w, nodes.wake_w)),
        shares=shares_of(
            world.weights,
            total.cost,
            total.carbon_g,
            int(np.isfinite(world.jobs.deadline_s).sum()),
        ),
        least_until_s=until_s,
    )  # fmt: skip


def new_parts(ready: Prepared, shown: Shown, heads: Heads) -> Parts:
    """Return the parts of a new episode's scene, which shows what it asks in `shown`."""
    world = ready.world
    count = world.jobs.arrival_s.size
    shown.asked[:] = OVER, NOWHERE, 0, NOWHERE, 0
    shown.reward[:] = 0.0
    most_starts = shown.slots.shape[2]
    return Parts(
        jobs=world.jobs,
        prospects=ready.prospects,
        cluster=idle_cluster(
            world,
            ready.sleep.copy(),
            capped=False,
            only_node_0=ready.policy.placing.only_node_0,
        ),
        grid=ready.grid,
        plan=empty_plan(world),
        terms=ready.terms,
        recorded=nothing_recorded(world.jobs, world.jobs.workers, False)._replace(
            placings=np.zeros((count + 1, 2))
        ),
        waiting=nobody_waiting(count),
        events=nothing_yet(count),
        starts=Starts(np.zeros((8, most_starts)), np.zeros(most_starts, np.int64)),
        accounts=Accounts(
            ready.true_grid,
            ready.machines,
            ready.shares,
            ready.least_until_s,
            np.array([world.nodes.memory_capacity.mean()]),
            np.zeros(count),
        ),
        shown=shown,
        asks_when=heads != "where",
        asks_where=heads != "when",
    )


def schedule_in(ready: Prepared, parts: Parts) -> Schedule:
    """Return what a scene has recorded so far."""
    return schedule_of(ready.world, parts.recorded, [], [], [], parts.cluster.sleep)


def rules_for(policy: Policy) -> Rules:
    """Return the rules that answer what the agent is not asked, and stand in for it."""
    return rules_of(policy.when, policy.placing.rule, QUEUES[policy.queue].order)


def _refuse(world: World, policy: Policy, heads: Heads) -> None:
    """Raise BadInput for what cannot be stepped through yet."""
    if world.outages.node.size:
        raise BadInput("environments do not know nodes that fail: take `failures` out")
    if world.batteries:
        raise BadInput("environments do not know panels yet: take sites without solar")
    if heads not in HEADS:
        raise BadInput(f"there is no head {heads!r}: give one of {', '.join(HEADS)}")
    for is_given, what, instead in (
        (policy.queue != USUAL_QUEUE, f"the queue {policy.queue}", f"{USUAL_QUEUE}"),
        (policy.cap != USUAL_CAP, f"the cap rule {policy.cap}", f"{USUAL_CAP}"),
        (may_suspend(world, policy), f"the pause rule {policy.pause}", "run-through"),
        (world.jobs.workers.max() > 1.0, "jobs of several workers", "a workload without"),
        (world.precedence.child.size > 0, "jobs that wait for others", "a workload without"),
        (policy.when in MAY_REJECT, f"{policy.when}, which rejects jobs", "another when rule"),
        (
            heads != "when" and policy.placing.stops_at_first,
            f"{policy.where}, which leaves nothing to choose",
            "a where rule that scores nodes",
        ),
    ):
        if is_given:
            raise BadInput(f"environments do not know {what} yet: take {instead}")


def _plain(columns: Any) -> Any:
    """Return (named tuples of) arrays in one piece that may be written: one type for all worlds."""
    if isinstance(columns, np.ndarray):
        return np.require(columns, requirements=["C", "W"])
    if hasattr(columns, "_make"):
        return columns._make(_plain(each) for each in columns)
    return columns
