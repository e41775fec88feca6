"""The settings of a run of the engine, which never change during it."""

from typing import NamedTuple

from greensched_policies.costs.cost import CostModel, Floats
from greensched_policies.costs.scaling import NO_SCALING
from greensched_policies.encoding.timing import USUAL_ON_TIME_TARGET, USUAL_RUNTIME_ERROR
from greensched_policies.encoding.weights import Weights
from greensched_simulator.arrays.moving import NO_LINKS


class RunConfig(NamedTuple):
    """The settings of a run."""

    discipline: int  # of the queue: see `queueing`
    slot_s: float  # distance of candidate starts
    nodes_to_score: int  # nodes with room that a search looks for
    weights: Weights
    model: CostModel
    sees_room: bool = True  # whether the `where` rule uses the room that a job leaves
    goes_on: bool = True  # a search begins where the last one stopped, else at the first node
    may_reject: bool = False  # whether the `when` rule may return infinite costs
    may_suspend: bool = False  # whether the `pause` rule may suspend jobs
    may_hold: bool = False  # whether a GreenPolicy holds jobs, so that the plan is the operator's
    may_pause: bool = False  # whether a GreenPolicy may also pause jobs
    asks_how_fast: bool = False  # whether an agent chooses the power caps of nodes
    caps_package_power: bool = False  # CPU caps limit watts of packages, else frequency
    scaling: Floats = NO_SCALING  # speed by workers; NO_SCALING if the policy does not scale jobs
    links: Floats = NO_LINKS  # between zones: see `moving`
    # What only learned policies are shown: see `Timing`.
    begin_s: float = 0.0  # of the run, in seconds since the epoch
    runtime_error: float = USUAL_RUNTIME_ERROR
    on_time_target: float = USUAL_ON_TIME_TARGET
    mean_memory: float = 1.0  # of a node, in bytes
