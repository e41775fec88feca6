"""The turns of the jobs of a queue being served; serving may stop at a job and go on later."""

import numpy as np

from greensched_policies.compiling.compiled import fast, inlined
from greensched_simulator.engine.queue.reservations import Reservation, nothing_reserved
from greensched_simulator.engine.run import QueueTurns

PLACE, IN_LINE, IS_ASKED, ARE_AGENTS = range(4)  # of the counts


@fast
def let_agents_choose(turns: QueueTurns) -> None:
    """Let agents choose nodes from now on."""
    turns.counts[ARE_AGENTS] = 1


@inlined
def are_taken(turns: QueueTurns) -> bool:
    """Return whether a queue is being served."""
    return bool(turns.counts[IN_LINE] > 0)


@fast
def begin(turns: QueueTurns, count: int) -> None:
    """Begin the turns of the jobs in line; forget refused requests and the reservation."""
    turns.counts[PLACE], turns.counts[IN_LINE] = 0, count
    turns.refused[:] = np.inf
    reserve(nothing_reserved(), turns)


@fast
def reserve(room: Reservation, turns: QueueTurns) -> None:
    """Store the reservation for the first job that has to wait."""
    turns.reserved[0], turns.reserved[1], turns.reserved[2] = room.node, room.at_s, room.cpu_cores
    turns.reserved[3], turns.reserved[4] = room.memory_bytes, room.gpus


@inlined
def reserved_in(turns: QueueTurns) -> Reservation:
    """Return the stored reservation."""
    kept = turns.reserved
    return Reservation(int(kept[0]), kept[1], kept[2], kept[3], kept[4])
