"""The heads of a learned bundle that decide in a run, and what `when` is shown of jobs."""

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from greensched_core.errors import BadInput
from greensched_operator.holding.holding import HoldTerms
from greensched_operator.objects.green_policy import BUILT_IN, GreenPolicy
from greensched_policies.learned.model_fields import ONNX
from greensched_policies.library.nets import NO_NET, CandidateNet, PackedNet, packed
from greensched_simulator.engine.holding.hold import LearnedTable
from greensched_simulator.policy import LEARNED, LEARNED_PREFIX, Policy
from greensched_simulator.world.world import World


class LearnedHeads(NamedTuple):
    """The nets that decide in place of rules; NO_NET: a rule decides."""

    when: PackedNet = NO_NET
    where: PackedNet = NO_NET
    how_fast: PackedNet = NO_NET


def heads_of(world: World, policy: Policy) -> LearnedHeads:
    """Return the heads that decide under a policy, those of its bundle or its GreenPolicy's.

    Raises BadInput if the bundle lacks such a head, or must be refused; and if the world lacks the
    net that its GreenPolicy names.
    """
    if not policy.bundle:
        return LearnedHeads(when=_when_net(world, policy))
    nets = _nets_in(policy.bundle)
    found = LearnedHeads(
        _head(policy, "when", policy.when, nets),
        _head(policy, "where", policy.where, nets),
        _head(policy, "how_fast", policy.cap, nets),
    )
    return found if policy.when == LEARNED else found._replace(when=_when_net(world, policy))


def when_rule_of(policy: GreenPolicy) -> str:
    """Return the rule that chooses starts, or that answers where a model gives no number."""
    return BUILT_IN.when_policy if policy.when_policy == ONNX else policy.when_policy


def learned_table(world: World, terms: list[HoldTerms | None]) -> LearnedTable:
    """Return what a net that chooses starts is shown of jobs with `terms`, [J]; not yet the net."""
    deadline_s = np.array([
        np.inf if one is None or one.deadline_s is None else one.deadline_s - world.start_s
        for one in terms
    ])  # fmt: skip
    return LearnedTable(NO_NET, deadline_s)


def _when_net(world: World, policy: Policy) -> PackedNet:
    """Return the net of a GreenPolicy that names a model, if one holds jobs."""
    green = world.green_policy
    if not policy.is_held or green is None or green.when_policy != ONNX:
        return NO_NET
    if world.when_net is None:
        raise BadInput(f"{green.title} has whenPolicy: {ONNX}, and the world has no net")
    return packed(world.when_net)


def _head(policy: Policy, name: str, rule: str, nets: dict[str, CandidateNet]) -> PackedNet:
    """Return a head of a policy's bundle, unless the policy names a rule instead."""
    if rule != LEARNED:
        return NO_NET
    if name not in nets:
        raise BadInput(
            f"the bundle {policy.bundle} has no head `{name}`: name a rule that decides instead, "
            f"as in {LEARNED_PREFIX}{policy.bundle}+{_INSTEAD[name]}"
        )
    return packed(nets[name])


_INSTEAD = {"when": "run-now", "where": "weighted-cost", "how_fast": "full-speed"}


@lru_cache(maxsize=64)
def _nets_in(folder: str) -> dict[str, CandidateNet]:
    """Return the nets of a checked bundle by head."""
    # onnxruntime, which checks bundles, takes a tenth of a second to load.
    from greensched_simulator.scenario.bundled_net import nets_in

    return nets_in(Path(folder))
