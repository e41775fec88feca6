"""What holds for a whole run of the engine, whatever happens in it."""

from typing import NamedTuple

from greensched_policies.costs.cost import CostModel, Floats
from greensched_policies.costs.scaling import NO_SCALING
from greensched_policies.encoding.weights import Weights
from greensched_simulator.arrays.moving import NO_LINKS


class RunConfig(NamedTuple):
    """What holds for a whole run."""

    discipline: int  # of the queue: see `queueing`
    slot_s: float  # starts are considered this far apart
    nodes_to_score: int  # nodes with room that a search looks for
    weights: Weights
    model: CostModel
    sees_room: bool = True  # whether the `where` rule looks at what room a job leaves
    goes_on: bool = True  # a search begins where the last one stopped, else at the first node
    may_reject: bool = False  # whether the `when` rule may give infinite costs
    may_suspend: bool = False  # whether the `pause` rule may have anything suspended
    asks_how_fast: bool = False  # whether an agent chooses the power caps of nodes
    scaling: Floats = NO_SCALING  # the world's curves; NO_SCALING where the pause rule keeps sizes
    links: Floats = NO_LINKS  # between zones: see `moving`
