"""What the `when` head of a GreenPolicy's bundle is shown of a world's jobs."""

import numpy as np

from greensched_core.errors import BadInput
from greensched_operator.holding.holding import HoldTerms
from greensched_operator.objects.green_policy import BUILT_IN, GreenPolicy
from greensched_policies.learned.model_fields import ONNX
from greensched_policies.library.nets import PackedNet, packed
from greensched_simulator.engine.holding.hold import LearnedTable
from greensched_simulator.world.world import World

_NO_NET = PackedNet(np.zeros(0, np.int64), np.zeros(0, np.float32))


def when_rule_of(policy: GreenPolicy) -> str:
    """Return the rule that chooses starts, or that answers where a model gives no number."""
    return BUILT_IN.when_policy if policy.when_policy == ONNX else policy.when_policy


def learned_table(world: World, policy: GreenPolicy, terms: list[HoldTerms | None]) -> LearnedTable:
    """Return the net that chooses starts, if the policy names a model; `terms`, [J], of the jobs.

    Raises BadInput if the world lacks the net.
    """
    deadline_s = np.array([
        np.inf if one is None or one.deadline_s is None else one.deadline_s - world.start_s
        for one in terms
    ])  # fmt: skip
    net = _NO_NET
    if policy.when_policy == ONNX:
        if world.when_net is None:
            raise BadInput(f"{policy.title} has whenPolicy: {ONNX}, and the world has no net")
        net = packed(world.when_net)
    return LearnedTable(
        net,
        deadline_s,
        float(world.nodes.memory_capacity.mean()),
        policy.runtime_error,
        policy.on_time_target,
    )
