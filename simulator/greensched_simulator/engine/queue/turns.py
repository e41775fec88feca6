"""Whose turn it is while a queue is served: it may stop at a job, and go on later."""

from typing import NamedTuple

import numpy as np

from greensched_policies.costs.cost import Floats, Integers
from greensched_simulator.compiling.compiled import fast, inlined
from greensched_simulator.engine.queue.refused import nothing_refused
from greensched_simulator.engine.queue.reservations import Reservation, nothing_reserved

PLACE, IN_LINE, IS_ASKED, ARE_AGENTS = range(4)  # of the counts


class Turns(NamedTuple):
    """Those who waited when a queue began to be served, and what became of it by now."""

    line: Integers  # [J] them, in the order of the rule
    # [4] the place of whose turn it is; how many they are, 0 while nobody is served; 1 while an
    # agent is asked for a node; 1 if agents choose nodes at all
    counts: Integers
    reserved: Floats  # [5] the fields of the reservation
    refused: Floats  # [R,3] see `refused`


@fast
def nobodys_turn(jobs: int) -> Turns:
    """Return the turns of a queue for so many jobs while nobody is served, by rules alone."""
    return Turns(
        np.empty(jobs, np.int64), np.zeros(4, np.int64), np.zeros(5), nothing_refused()
    )  # fmt: skip


@fast
def let_agents_choose(turns: Turns) -> None:
    """Have agents asked for nodes from now on."""
    turns.counts[ARE_AGENTS] = 1


@inlined
def are_taken(turns: Turns) -> bool:
    """Tell whether a queue is being served."""
    return bool(turns.counts[IN_LINE] > 0)


@fast
def begin(turns: Turns, count: int) -> None:
    """Let those in line have their turns; nothing is known yet of what room there is."""
    turns.counts[PLACE], turns.counts[IN_LINE] = 0, count
    turns.refused[:] = np.inf
    reserve(nothing_reserved(), turns)


@fast
def reserve(room: Reservation, turns: Turns) -> None:
    """Keep room for the first one that has to wait."""
    turns.reserved[0], turns.reserved[1], turns.reserved[2] = room.node, room.at_s, room.cpu_cores
    turns.reserved[3], turns.reserved[4] = room.memory_bytes, room.gpus


@inlined
def reserved_in(turns: Turns) -> Reservation:
    """Return what is reserved."""
    kept = turns.reserved
    return Reservation(int(kept[0]), kept[1], kept[2], kept[3], kept[4])
