"""Placing jobs together at the least total cost, so that none takes a node another needs more.

This is the assignment problem: each row gets its own column, at the least total cost.
"""

import numpy as np

from greensched_policies.compiling.compiled import fast
from greensched_policies.costs.cost import Floats, Integers
from greensched_simulator.arrays.jobs import JobArrays
from greensched_simulator.engine.execution.running import start
from greensched_simulator.engine.execution.workers import are_several, new_worker
from greensched_simulator.engine.queue.gangs import start_gang
from greensched_simulator.engine.run import Run
from greensched_simulator.engine.state.choices import NOWHERE, fits, score_nodes
from greensched_simulator.engine.state.cluster import ClusterState
from greensched_simulator.engine.state.refused import asks_as_much, nothing_refused, refuse

NO_ROW = -1


@fast
def cheapest_columns(cost: Floats) -> Integers:
    """Return the column of each row, [R], for costs [R,C], which may be infinite.

    An assignment with finite costs must exist. Exact, by shortest augmenting paths, row by row:
    Jonker and Volgenant, "A shortest augmenting path algorithm for dense and sparse linear
    assignment problems", Computing 38, 1987, without their initialisation; O(R² · C) time.
    """
    rows, columns = cost.shape
    holder = np.full(columns + 1, NO_ROW)  # the row of each column; the last is for the new row
    row_price, column_price = np.zeros(rows), np.zeros(columns + 1)
    for row in range(rows):
        holder[columns] = row
        _augment(cost, holder, row_price, column_price)
    chosen = np.empty(rows, np.int64)
    for column in range(columns):
        if holder[column] != NO_ROW:
            chosen[holder[column]] = column
    return chosen


@fast
def _augment(cost: Floats, holder: Integers, row_price: Floats, column_price: Floats) -> None:
    """Give the new row a column at the least cost, and move other rows to other columns for it."""
    columns = cost.shape[1]
    at = columns
    before = np.full(columns, columns)  # the column from which each column is reached
    way = np.full(columns, np.inf)  # distance to each column
    is_reached = np.zeros(columns + 1, np.bool_)
    while holder[at] != NO_ROW:
        is_reached[at] = True
        row, nearest, step = holder[at], at, np.inf
        for column in range(columns):
            if is_reached[column]:
                continue
            reduced = cost[row, column] - row_price[row] - column_price[column]
            if reduced < way[column]:
                way[column], before[column] = reduced, at
            if way[column] < step:
                nearest, step = column, way[column]
        for column in range(columns + 1):
            if is_reached[column]:
                row_price[holder[column]] += step
                column_price[column] -= step
            elif column < columns:
                way[column] -= step
        at = nearest
    while at != columns:
        holder[at] = holder[before[at]]
        at = before[at]


MOST_AT_ONCE = 64  # jobs of a round, whose time grows with their square; the next takes the rest


@fast
def place_together(now_s: float, waiting: Integers, run: Run) -> None:
    """Start all waiting jobs that find room, in rounds; the record gives them nodes.

    A round starts as many jobs as it can, one per node, at the least sum of the `where` rule's
    costs. This is the flow of Hu, de Laat and Zhao, "Concurrent container scheduling on
    heterogeneous clusters with multi-resource constraints" (ECSched), FGCS 102, 2020, on nodes of
    capacity one. Jobs that have or may have several workers come last, in their order.
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
            worker = new_worker(job, now_s, run)
            scores = score_nodes(
                cluster, rows, run.grid, run.terms, run.rules, worker, run.nodes_memory
            )
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
    """Return the first MOST_AT_ONCE jobs that still wait, have one worker, and fit on some node."""
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
            refuse(job, jobs, refused)  # free room only shrinks while jobs are placed
            continue
        batch[count] = job
        count += 1
    return batch[:count]


@fast
def look_for_room(job: int, jobs: JobArrays, cluster: ClusterState, most: int) -> int:
    """Write the first `most` nodes with room into `cluster.found`; return their number."""
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
    """Set the cost of waiting, after the nodes, so high that as few jobs as possible wait."""
    least, most = np.inf, -np.inf
    for place in range(cost.shape[0]):
        for node in range(nodes):
            if not np.isinf(cost[place, node]):
                least, most = min(least, cost[place, node]), max(most, cost[place, node])
    cost[:, nodes:] = most + (most - least + 1.0) * cost.shape[0]
