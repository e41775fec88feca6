"""The assignment problem: each row gets a column of its own, for the least cost in all."""

import numpy as np

from greensched_policies.costs.cost import Floats, Integers
from greensched_simulator.compiling.compiled import fast

NOBODY = -1


@fast
def cheapest_columns(cost: Floats) -> Integers:
    """Return the column of each row, [R], for costs [R,C], which may be infinite.

    There must be a way to give every row a column at a finite cost. Exact, by shortest augmenting
    paths, row by row: Jonker and Volgenant, "A shortest augmenting path algorithm for dense and
    sparse linear assignment problems", Computing 38, 1987, without their initialisation; R² · C.
    """
    rows, columns = cost.shape
    holder = np.full(columns + 1, NOBODY)  # the row of each column; the last is the newcomer's
    row_price, column_price = np.zeros(rows), np.zeros(columns + 1)
    for row in range(rows):
        holder[columns] = row
        _augment(cost, holder, row_price, column_price)
    chosen = np.empty(rows, np.int64)
    for column in range(columns):
        if holder[column] != NOBODY:
            chosen[holder[column]] = column
    return chosen


@fast
def _augment(cost: Floats, holder: Integers, row_price: Floats, column_price: Floats) -> None:
    """Let the newcomer in at the least cost, others moving on to other columns for it."""
    columns = cost.shape[1]
    at = columns
    before = np.full(columns, columns)  # whence each column is reached
    way = np.full(columns, np.inf)  # how far it is to each column
    is_reached = np.zeros(columns + 1, np.bool_)
    while holder[at] != NOBODY:
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
