"""The relative costs of candidates by a net, LANES candidates at a time.

The context's part is computed once. The weights of a small net, and the values of its layers for
LANES candidates, stay in the processor's first cache.
"""

from typing import Any, NamedTuple

import numpy as np

from greensched_policies.compiling.compiled import borrowing, fast, inlined
from greensched_policies.kernel.vector_products import one_unit, some_units
from greensched_policies.library.nets import (
    BUSIEST,
    FEATURES,
    HIDDEN,
    LANES,
    LEAST,
    OFFSET,
    ONE,
    OVERLOAD,
    ROOM_ENDS,
    SEGMENTS,
    SHARED,
    TOGETHER,
    WEIGHTED,
    WIDTHS,
    Float32s,
    PackedNet,
)

_NOTHING = np.float32(0.0)


class NetScratch(NamedTuple):
    """Working memory for a net; its contents last for one set of candidates."""

    linear: Float32s  # [1+F] offset and coefficients
    first: Float32s  # the first layer, with the context's part in its biases
    below: Float32s  # [F,LANES] features of some candidates
    one: Float32s  # [units,LANES] values of a layer
    two: Float32s  # the same, of the next one
    found: Float32s  # [2,LANES] the two parts of the costs


@fast
def empty_net_scratch(net: PackedNet) -> NetScratch:
    """Return working memory for a net."""
    features, widest = net.sizes[FEATURES], 0
    for layer in range(net.sizes[HIDDEN]):
        widest = max(widest, _units_of(net, layer))
    first = _units_of(net, 0) if net.sizes[HIDDEN] > 0 else 0
    return NetScratch(
        np.empty(1 + features, np.float32),
        np.empty(first * (1 + features), np.float32),
        np.empty(features * LANES, np.float32),
        np.empty(widest * LANES, np.float32),
        np.empty(widest * LANES, np.float32),
        np.empty(2 * LANES, np.float32),
    )


@borrowing
def rate_candidates(
    net: PackedNet, features: Float32s, context: Float32s, scratch: NetScratch, costs: Float32s
) -> None:
    """Fill in the relative costs, [N], of the first N candidates of features, [F,K], K ≥ N.

    `context`, [C], is what they share.
    """
    _bind_context(net, context, scratch)
    found = scratch.found
    for begin in range(0, costs.size, LANES):
        width = min(LANES, costs.size - begin)
        _take(features, begin, width, scratch.below)
        one_unit(scratch.linear, 0, net.sizes[FEATURES], scratch.below, found, 0)
        for place in range(width):
            costs[begin + place] = found[place]
        if net.sizes[HIDDEN] > 0:
            _run_layers(net, scratch)
            for place in range(width):
                costs[begin + place] += found[LANES + place]
    if net.sizes[WEIGHTED] >= 0:
        _add_overload(net, features, costs)


@inlined
def _units_of(net: PackedNet, layer: int) -> int:
    """Return the units of a hidden layer, with those that fill up the last group."""
    units: int = net.sizes[WIDTHS + layer]
    return (units + TOGETHER - 1) // TOGETHER * TOGETHER


@inlined
def _placed_at(net: PackedNet) -> int:
    """Return where `placed` begins among the numbers."""
    at: int = SEGMENTS + net.sizes[FEATURES] + net.sizes[SHARED]
    return at


@inlined
def _first_layer_at(net: PackedNet) -> int:
    """Return where the first layer begins among the numbers."""
    a_context: int = net.sizes[FEATURES] + _units_of(net, 0)
    at: int = _placed_at(net) + net.sizes[SHARED] * a_context
    return at


@borrowing
def _bind_context(net: PackedNet, context: Float32s, scratch: NetScratch) -> None:
    """Fill in the coefficients and the first layer for a context."""
    numbers, features, shared = net.numbers, net.sizes[FEATURES], net.sizes[SHARED]
    total, placed_at = _NOTHING, _placed_at(net)
    for column in range(shared):
        total += context[column] * numbers[SEGMENTS + features + column]
    divisor = max(total, numbers[LEAST])
    scratch.linear[0] = numbers[OFFSET]
    for feature in range(features):
        placed = _NOTHING
        for column in range(shared):
            placed += context[column] * numbers[placed_at + column * features + feature]
        scratch.linear[1 + feature] = numbers[SEGMENTS + feature] + placed / divisor
    if net.sizes[HIDDEN] > 0:
        _bind_first_layer(net, context, scratch.first)


@borrowing
def _bind_first_layer(net: PackedNet, context: Float32s, first: Float32s) -> None:
    numbers, units, rows = net.numbers, _units_of(net, 0), 1 + net.sizes[FEATURES]
    at, of_context_at = _first_layer_at(net), _placed_at(net)
    of_context_at += net.sizes[SHARED] * net.sizes[FEATURES]
    for place in range(first.size):
        first[place] = numbers[at + place]
    for unit in range(units):
        group, inside = unit // TOGETHER, unit % TOGETHER
        bias = first[group * TOGETHER * rows + inside]
        for column in range(net.sizes[SHARED]):
            bias += context[column] * numbers[of_context_at + column * units + unit]
        first[group * TOGETHER * rows + inside] = bias


@borrowing
def _take(features: Float32s, begin: int, width: int, below: Float32s) -> None:
    """Copy the features of some candidates; lanes beyond the last candidate are zero."""
    for feature in range(features.shape[0]):
        to: Any = feature * LANES
        if width == LANES:
            for place in range(LANES):
                below[to + place] = features[feature, begin + place]
        else:
            for place in range(width):
                below[to + place] = features[feature, begin + place]
            for place in range(width, LANES):
                below[to + place] = _NOTHING


@borrowing
def _run_layers(net: PackedNet, scratch: NetScratch) -> None:
    """Fill in the net's part of the costs of LANES candidates."""
    inputs, units = net.sizes[FEATURES], _units_of(net, 0)
    _run_layer(scratch.first, 0, inputs, units, scratch.below, scratch.one)
    at, is_in_one = _first_layer_at(net) + units * (1 + inputs), True
    for layer in range(1, net.sizes[HIDDEN]):
        inputs, units = net.sizes[WIDTHS + layer - 1], _units_of(net, layer)
        if is_in_one:
            _run_layer(net.numbers, at, inputs, units, scratch.one, scratch.two)
        else:
            _run_layer(net.numbers, at, inputs, units, scratch.two, scratch.one)
        at, is_in_one = at + units * (1 + inputs), not is_in_one
    inputs = net.sizes[WIDTHS + net.sizes[HIDDEN] - 1]
    if is_in_one:
        one_unit(net.numbers, at, inputs, scratch.one, scratch.found, LANES)
    else:
        one_unit(net.numbers, at, inputs, scratch.two, scratch.found, LANES)


@borrowing
def _run_layer(
    weights: Float32s, at: int, inputs: int, units: int, below: Float32s, above: Float32s
) -> None:
    """Fill in the values of a hidden layer, with Relu."""
    for unit in range(0, units, TOGETHER):
        begin = at + unit * (1 + inputs)
        some_units(weights, begin, inputs, below, above, unit * LANES)


@borrowing
def _add_overload(net: PackedNet, features: Float32s, costs: Float32s) -> None:
    """Raise the costs of candidates beyond the capacity above all others."""
    weighted, busiest = features[net.sizes[WEIGHTED]], features[net.sizes[BUSIEST]]
    highest, lowest = weighted[0], weighted[0]
    for place in range(costs.size):
        highest, lowest = max(highest, weighted[place]), min(lowest, weighted[place])
    dearer = net.numbers[OVERLOAD] * (net.numbers[ONE] + (highest - lowest))
    for place in range(costs.size):
        if busiest[place] > net.numbers[ROOM_ENDS]:
            costs[place] += dearer * busiest[place]
