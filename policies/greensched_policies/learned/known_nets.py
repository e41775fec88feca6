"""Recognises the graphs that the library can compute: see `library/nets.py` for what they are.

The layout is that of `train/greensched_train/graphs.py`: candidates are the columns, the context's
part of the first layer is added to each, and the terms of the cost are added up. Anything else is
left to onnxruntime, such as attention to the other candidates.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from greensched_policies.encoding.observation import CONTEXT_FEATURES
from greensched_policies.learned.graph_expression import (
    Applied,
    Constant,
    Expression,
    GraphInput,
    read_expression,
)
from greensched_policies.learned.heads import Head
from greensched_policies.learned.onnx_policy import CONTEXT_INPUT, OUTPUT
from greensched_policies.library.nets import CandidateNet, DenseLayer, Overload

MOST_TERMS = 64
_ACROSS_CANDIDATES, _ACROSS_FEATURES = (2,), (1,)

Array = npt.NDArray[Any]


class AnotherShape(ValueError):
    """A graph that the library does not compute; the message says what is unlike."""


def known_net(model: bytes, head: Head) -> CandidateNet:
    """Return the net of a head's graph; raises AnotherShape if the library cannot compute it."""
    match read_expression(model, OUTPUT):
        case Applied("Squeeze", (terms, *_)) as whole if _axes(whole) == _ACROSS_FEATURES:
            return _Terms(head).add_all(terms)
        case other:
            raise AnotherShape(f"the costs come from {_named(other)}, not from Squeeze of a sum")


class _Terms:
    """Adds up the terms of a head's cost."""

    def __init__(self, head: Head) -> None:
        self._features, self._shared = head.features, len(CONTEXT_FEATURES)
        self._candidates = head.candidates_input
        self._offset = 0.0
        self._own = np.zeros(self._features, np.float32)
        self._weighted: tuple[Array, Array, float] | None = None
        self._overload: Overload | None = None
        self._layers: list[DenseLayer] = []
        self._of_context = np.zeros((self._shared, 0), np.float32)

    def add_all(self, whole: Expression) -> CandidateNet:
        """Return the net of a sum; raises AnotherShape."""
        ahead, seen = [(whole, 1.0)], 0
        while ahead:
            term, sign = ahead.pop()
            seen += 1
            if seen > MOST_TERMS:
                raise AnotherShape(f"the cost has more than {MOST_TERMS} terms")
            match term:
                case Applied("Add", (one, two)):
                    ahead += [(one, sign), (two, sign)]
                case Applied("Sub", (one, two)):
                    ahead += [(one, sign), (two, -sign)]
                case _:
                    self._add(term, np.float32(sign))
        placed, total, least = self._weighted or (
            np.zeros((self._shared, self._features), np.float32),
            np.zeros(self._shared, np.float32),
            1.0,
        )
        return CandidateNet(
            self._offset, self._own, placed, total, least, self._overload, self._of_context,
            self._layers,
        )  # fmt: skip

    def _add(self, term: Expression, sign: np.float32) -> None:
        match term:
            case Constant(value) if value is not None and value.size == 1 and value.ndim <= 3:
                self._offset += float(sign) * _number(value)
            case Applied("Gather", _):
                self._own[self._feature(term)] += sign
            case Applied("MatMul", (Constant(row), GraphInput(name))) if name == self._candidates:
                self._own += sign * _reals(row, (1, self._features))[0]
            case Applied(
                "MatMul", (Applied("Unsqueeze", (found, *_)) as row, GraphInput(name))
            ) if sign == 1.0 and name == self._candidates and _axes(row) == _ACROSS_FEATURES:
                self._add_weighted(found)
            case Applied("MatMul", (Constant(row), Applied() as hidden)):
                self._add_layers(sign * _reals(row, (1, None)), hidden)
            case Applied("Mul", _) if sign == 1.0:
                self._add_overload(term)
            case _:
                raise AnotherShape(f"{_named(term)} is no term that the library knows")

    def _feature(self, chosen: Expression) -> int:
        """Return the place of one feature of the candidates."""
        match chosen:
            case Applied("Gather", (GraphInput(name), Constant(place)), options) if (
                name == self._candidates
                and options.get("axis") == _ACROSS_FEATURES
                and place is not None
                and place.shape == (1,)
                and place.dtype == np.int64
                and -self._features <= place[0] < self._features
            ):
                return int(place[0]) % self._features
        raise AnotherShape(f"{_named(chosen)} is not one feature of the candidates")

    def _add_weighted(self, coefficients: Expression) -> None:
        """Add features weighted by the context, over the sum of the weights."""
        match coefficients:
            case Applied(
                "Div",
                (
                    Applied("MatMul", (GraphInput(first), Constant(placed))),
                    Applied(
                        "Max",
                        (Applied("MatMul", (GraphInput(second), Constant(sums))), Constant(least)),
                    ),
                ),
            ) if first == second == CONTEXT_INPUT and self._weighted is None:
                self._weighted = (
                    _reals(placed, (self._shared, self._features)),
                    _reals(sums, (self._shared, 1))[:, 0],
                    _number(least),
                )
            case _:
                raise AnotherShape("the candidates are weighted in another way")

    def _add_overload(self, term: Expression) -> None:
        """Add what work beyond the capacity costs."""
        match term:
            case Applied("Mul", (Applied("Mul", (dearer, busiest)), is_over)) if (
                self._overload is None
            ):
                weighted, one, overload = self._dearer_than_all(dearer)
                full = self._end_of_room(is_over, busiest)
                self._overload = Overload(weighted, self._feature(busiest), one, overload, full)
            case _:
                raise AnotherShape("a product is not the known cost of overload")

    def _dearer_than_all(self, cost: Expression) -> tuple[int, float, float]:
        """Return the feature whose spread is multiplied, what is added to it, and the factor."""
        match cost:
            case Applied("Mul", (Constant(overload), Applied("Add", (Constant(one), spread)))):
                match spread:
                    case Applied(
                        "Sub",
                        (
                            Applied("ReduceMax", (most, *_)) as highest,
                            Applied("ReduceMin", (least, *_)) as lowest,
                        ),
                    ) if all(map(_spans_candidates, (highest, lowest))):
                        if self._feature(most) == self._feature(least):
                            return self._feature(most), _number(one), _number(overload)
        raise AnotherShape("overload costs something else than a multiple of a feature's spread")

    def _end_of_room(self, is_over: Expression, busiest: Expression) -> float:
        """Return what a feature is compared with."""
        match is_over:
            case Applied("Cast", (Applied("Greater", (found, Constant(full))),), {"to": (1,)}):
                if self._feature(found) == self._feature(busiest):
                    return _number(full)
        raise AnotherShape("overload begins at something else than a feature above a number")

    def _add_layers(self, last: Array, hidden: Expression) -> None:
        """Add a chain of dense layers, from its end to the candidates."""
        if self._layers:
            raise AnotherShape("there are two nets")
        layers = [DenseLayer(last, np.zeros(1, np.float32))]
        while True:
            match hidden:
                case Applied("Relu", (summed,)):
                    weights, below, rest = _product(summed)
                case _:
                    raise AnotherShape(f"{_named(hidden)} is no layer with Relu")
            units = layers[0].weights.shape[1]
            if isinstance(below, GraphInput):
                break
            weights = _reals(weights, (units, None))
            layers.insert(0, DenseLayer(weights, _column(rest, units)))
            hidden = below
        if below.name != self._candidates:
            raise AnotherShape(f"the first layer reads {below.name}")
        self._of_context, biases = self._context_part(rest, units)
        layers.insert(0, DenseLayer(_reals(weights, (units, self._features)), biases))
        self._layers = layers

    def _context_part(self, rest: Expression | None, units: int) -> tuple[Array, Array]:
        """Return what the context adds to the first layer, [C,units], and its biases."""
        match rest:
            case Applied("Unsqueeze", (summed, *_)) if _axes(rest) == _ACROSS_CANDIDATES:
                pass
            case _:
                return np.zeros((self._shared, units), np.float32), _column(rest, units)
        biases = np.zeros(units, np.float32)
        match summed:
            case Applied("Add", (product, Constant(found)) | (Constant(found), product)):
                biases = _reals(found, (units,))
            case product:
                pass
        match product:
            case Applied("MatMul", (GraphInput(name), Constant(weights))) if name == CONTEXT_INPUT:
                return _reals(weights, (self._shared, units)), biases
        raise AnotherShape("the context enters the first layer in another way")


def _product(summed: Expression) -> tuple[Array | None, Expression, Expression | None]:
    """Return weights, what they multiply, and what is added to that, if anything."""
    match summed:
        case Applied("MatMul", (Constant(weights), below)):
            return weights, below, None
        case Applied("Add", (Applied("MatMul", (Constant(weights), below)), rest)):
            return weights, below, rest
        case Applied("Add", (rest, Applied("MatMul", (Constant(weights), below)))):
            return weights, below, rest
    raise AnotherShape(f"{_named(summed)} is no dense layer")


def _column(rest: Expression | None, units: int) -> Array:
    """Return the biases of a layer, of which each is for a row of candidates."""
    match rest:
        case None:
            return np.zeros(units, np.float32)
        case Constant(value):
            return _reals(value, (units, 1))[:, 0]
    raise AnotherShape(f"{_named(rest)} is no bias")


def _spans_candidates(reduced: Expression) -> bool:
    return (
        isinstance(reduced, Applied)
        and _axes(reduced) == _ACROSS_CANDIDATES
        and reduced.options.get("keepdims", (1,)) == (1,)
    )


def _axes(applied: Expression) -> tuple[int, ...] | None:
    """Return an operator's axes, of its options or, in later versions of ONNX, its inputs."""
    match applied:
        case Applied(_, (_, Constant(value))) if value is not None and value.dtype == np.int64:
            return tuple(value.ravel().tolist())
        case Applied(_, (_,), options):
            return options.get("axes")
    return None


def _reals(value: Array | None, shape: tuple[int | None, ...]) -> npt.NDArray[np.float32]:
    """Return a tensor of float32 of a shape, None for any size; raises AnotherShape."""
    if value is None or value.dtype != np.float32 or value.ndim != len(shape) or not value.size:
        raise AnotherShape("a tensor is not float32, or has another shape")
    if any(wanted not in (None, size) for wanted, size in zip(shape, value.shape, strict=True)):
        raise AnotherShape(f"a tensor has shape {value.shape} instead of {shape}")
    return value


def _number(value: Array | None) -> float:
    if value is None or value.dtype != np.float32 or value.size != 1:
        raise AnotherShape("a constant is not one float32")
    return float(value.ravel()[0])


def _named(expression: Expression | None) -> str:
    match expression:
        case Applied(operator, _):
            return operator or "a second output"
        case GraphInput(name):
            return f"the input {name}"
        case Constant(_):
            return "a constant"
    return "nothing"
