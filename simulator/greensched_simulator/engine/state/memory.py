"""Working memory of a run: each decision fills it in anew, instead of making arrays of its own."""

from typing import NamedTuple

import numpy as np

from greensched_policies.compiling.compiled import fast
from greensched_policies.costs.capping import POWER_CAPS, CapColumns
from greensched_policies.costs.cost import Floats, Integers
from greensched_policies.encoding.observation import CONTEXT_FEATURES, NODE_FEATURES
from greensched_policies.encoding.power_cap_observation import POWER_CAP_FEATURES
from greensched_policies.kernel.nets import NetScratch, empty_net_scratch
from greensched_policies.kernel.seeing_nodes import Scratch, Singles, empty_scratch
from greensched_policies.kernel.starts import SEEN, SLOT_COLUMNS
from greensched_policies.library.nets import PackedNet

_NODE_FEATURES, _CONTEXT_FEATURES = len(NODE_FEATURES), len(CONTEXT_FEATURES)
_CAP_COLUMNS, _CAP_FEATURES = len(CapColumns._fields), len(POWER_CAP_FEATURES)


class NodesMemory(NamedTuple):
    """Memory for what a rule is shown of up to N nodes."""

    features: Singles  # [22·N]
    context: Singles  # [1,15]
    scratch: Scratch  # for N candidates
    net: NetScratch  # of the net that chooses nodes; empty if a rule does
    costs: Singles  # [N] by that net


class StartsMemory(NamedTuple):
    """Memory for up to S candidate starts of a job in all zones."""

    columns: Floats  # [K] see `slot_columns`, which divides it up
    best: Integers  # [S] the best zone of each


class CapsMemory(NamedTuple):
    """Memory for the power caps of one domain of a node."""

    seen: Floats  # [6,L] the fields of CapColumns
    features: Singles  # [13,L] POWER_CAP_FEATURES
    context: Singles  # [15]
    net: NetScratch  # of the net that chooses power caps; empty if a rule does
    costs: Singles  # [L] by that net


@fast
def nodes_memory(zones: int, nodes: int, net: PackedNet) -> NodesMemory:
    """Return memory for up to `nodes` candidates, which a net or a rule rates."""
    features = np.empty(_NODE_FEATURES * nodes, np.float32)
    context = np.empty((1, _CONTEXT_FEATURES), np.float32)
    costs = np.empty(nodes, np.float32)
    return NodesMemory(features, context, empty_scratch(zones, nodes), _scratch_for(net), costs)


@fast
def caps_memory(net: PackedNet) -> CapsMemory:
    """Return memory for the power caps of one domain, which a net or a rule rates."""
    caps = POWER_CAPS.size
    return CapsMemory(
        np.empty((_CAP_COLUMNS, caps)), np.empty((_CAP_FEATURES, caps), np.float32),
        np.empty(_CONTEXT_FEATURES, np.float32), _scratch_for(net), np.empty(caps, np.float32),
    )  # fmt: skip


@fast
def _scratch_for(net: PackedNet) -> NetScratch:
    """Return working memory for a net; empty if a rule rates."""
    if net.sizes.size > 0:
        return empty_net_scratch(net)
    nothing = np.empty(0, np.float32)
    return NetScratch(nothing, nothing, nothing, nothing, nothing, nothing)


@fast
def starts_memory(zones: int, starts: int, slots: int) -> StartsMemory:
    """Return memory for up to `starts` starts of a job that runs in at most `slots` slots."""
    columns = (SEEN * zones + SLOT_COLUMNS) * starts + 2 * (starts + slots)
    return StartsMemory(np.empty(columns), np.empty(starts, np.int64))
