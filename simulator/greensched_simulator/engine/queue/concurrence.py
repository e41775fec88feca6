"""Jobs that are placed together: none takes a node that another one needs more."""

import numpy as np

from greensched_policies.costs.cost import Floats, Integers
from greensched_simulator.arrays.jobs import Jobs
from greensched_simulator.compiling.compiled import fast
from greensched_simulator.engine.execution.running import start
from greensched_simulator.engine.execution.workers import are_several, newcomer
from greensched_simulator.engine.queue.assignment import cheapest_columns
from greensched_simulator.engine.queue.gangs import start_gang
from greensched_simulator.engine.run import Run
from greensched_simulator.engine.state.choices import NOWHERE, fits, score_nodes
from greensched_simulator.engine.state.cluster import ClusterState
from greensched_simulator.engine.state.refused import asks_as_much, nothing_refused, refuse

MOST_AT_ONCE = 64  # jobs of a round; its cost grows with their square, the others come next


@fast
def place_together(now_s: float, waiting: Integers, run: Run) -> None:
    """Start whom there is room for, by rounds; the record tells who that was.

    A round starts as many jobs as it can, one on a node, for the least sum of what the `where` rule
    says: the flow of Hu, de Laat and Zhao, "Concurrent container scheduling on heterogeneous
    clusters with multi-resource constraints" (ECSched), FGCS 102, 2020, on nodes of capacity one.
    Jobs that have or may have several workers come last, in their order.
    """
    jobs, cluster, refused = run.jobs, run.cluster, nothing_refused()
    nodes = cluster.cpu_free.size
    while True:
        batch = in_line(waiting, refused, run)
        if batch.size == 0:
            break
        cost = np.full((batch.size, nodes + batch.size), np.inf)
        for place in range(batch.size):
            job = batch[place]
            rows = cluster.found[: look_for_room(job, jobs, cluster, nodes)]
            worker = newcomer(job, now_s, run)
            scores = score_nodes(cluster, rows, run.grid, run.terms, run.rules, worker)
            for candidate in range(rows.size):
                cost[place, rows[candidate]] = scores[candidate]
        price_waiting(cost, nodes)
        chosen = cheapest_columns(cost)
        for place in range(batch.size):
            if chosen[place] < nodes:
                start(batch[place], chosen[place], now_s, run)
    for job in waiting:
        if are_several(job, jobs, run.terms) and not asks_as_much(job, jobs, refused):
            start_gang(job, now_s, run)


@fast
def in_line(waiting: Integers, refused: Floats, run: Run) -> Integers:
    """Return the first of those that still wait and fit on some node."""
    jobs, cluster, recorded, terms = run.jobs, run.cluster, run.recorded, run.terms
    batch, count = np.empty(MOST_AT_ONCE, np.int64), 0
    for job in waiting:
        if count == MOST_AT_ONCE:
            break
        if recorded.node[job] != NOWHERE or are_several(job, jobs, terms):
            continue
        if asks_as_much(job, jobs, refused):
            continue
        if look_for_room(job, jobs, cluster, 1) == 0:
            refuse(job, jobs, refused)  # rooms only shrink until all are served
            continue
        batch[count] = job
        count += 1
    return batch[:count]


@fast
def look_for_room(job: int, jobs: Jobs, cluster: ClusterState, most: int) -> int:
    """Find up to `most` nodes with room, from the first on; return how many.

    Their places stand in `cluster.found`.
    """
    count = 0
    for node in range(cluster.cpu_free.size):
        if fits(cluster, node, jobs.cpu_cores[job], jobs.memory_bytes[job], jobs.gpus[job]):
            cluster.found[count] = node
            count += 1
            if count == most:
                break
    return count


@fast
def price_waiting(cost: Floats, nodes: int) -> None:
    """Fill in what waiting costs, behind the nodes: so much that as few as possible do."""
    least, most = np.inf, -np.inf
    for place in range(cost.shape[0]):
        for node in range(nodes):
            if not np.isinf(cost[place, node]):
                least, most = min(least, cost[place, node]), max(most, cost[place, node])
    cost[:, nodes:] = most + (most - least + 1.0) * cost.shape[0]
