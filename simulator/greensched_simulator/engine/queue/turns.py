"""Whose turn it is while a queue is served: it may stop at a job, and go on later."""

import numpy as np

from greensched_simulator.compiling.compiled import fast, inlined
from greensched_simulator.engine.queue.reservations import Reservation, nothing_reserved
from greensched_simulator.engine.run import QueueTurns

PLACE, IN_LINE, IS_ASKED, ARE_AGENTS = range(4)  # of the counts


@fast
def let_agents_choose(turns: QueueTurns) -> None:
    """Have agents asked for nodes from now on."""
    turns.counts[ARE_AGENTS] = 1


@inlined
def are_taken(turns: QueueTurns) -> bool:
    """Tell whether a queue is being served."""
    return bool(turns.counts[IN_LINE] > 0)


@fast
def begin(turns: QueueTurns, count: int) -> None:
    """Let those in line have their turns; nothing is known yet of what room there is."""
    turns.counts[PLACE], turns.counts[IN_LINE] = 0, count
    turns.refused[:] = np.inf
    reserve(nothing_reserved(), turns)


@fast
def reserve(room: Reservation, turns: QueueTurns) -> None:
    """Keep room for the first one that has to wait."""
    turns.reserved[0], turns.reserved[1], turns.reserved[2] = room.node, room.at_s, room.cpu_cores
    turns.reserved[3], turns.reserved[4] = room.memory_bytes, room.gpus


@inlined
def reserved_in(turns: QueueTurns) -> Reservation:
    """Return what is reserved."""
    kept = turns.reserved
    return Reservation(int(kept[0]), kept[1], kept[2], kept[3], kept[4])
