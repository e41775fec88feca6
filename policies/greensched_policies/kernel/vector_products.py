"""Dense layers on vectors of LANES candidates, whose sums stay in registers.

Plain loops were tried: LLVM vectorises them, but reads and writes each sum for each few inputs, or
asks at run time whether arrays overlap. They took four times as long. Vectors of any length are
LLVM's own; it makes instructions of them that the processor has.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.cgutils import get_or_insert_function
from numba.extending import intrinsic

from greensched_policies.library.nets import LANES, TOGETHER

_WORD, _PLACE, _SINGLE = ir.IntType(64), ir.IntType(32), ir.FloatType()
_VECTOR = ir.VectorType(_SINGLE, LANES)
_FUSED = f"llvm.fmuladd.v{LANES}f32"  # one instruction where the processor has it


class _Code:
    """Writes LLVM's code with vectors."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder
        of_three = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
        self._fused = get_or_insert_function(builder.module, of_three, _FUSED)

    def number(self, start: Any, at: Any, more: int) -> Any:
        """Return one number of an array, in all lanes of a vector."""
        place = self.builder.add(at, _WORD(more))
        return self.everywhere(self.builder.load(self.builder.gep(start, [place])))

    def everywhere(self, value: Any) -> Any:
        """Return a vector whose lanes are all the same number."""
        nothing, lanes = ir.Constant(_VECTOR, ir.Undefined), ir.VectorType(_PLACE, LANES)
        first = self.builder.insert_element(nothing, value, _PLACE(0))
        return self.builder.shuffle_vector(first, nothing, lanes([0] * LANES))

    def vector_at(self, start: Any, at: Any) -> Any:
        """Return the pointer to a vector in an array."""
        return self.builder.bitcast(self.builder.gep(start, [at]), _VECTOR.as_pointer())

    def relu(self, value: Any) -> Any:
        """Return a vector without negative numbers; NaN stays, as it must be seen."""
        zero = ir.Constant(_VECTOR, [0.0] * LANES)
        return self.builder.select(self.builder.fcmp_ordered("<", value, zero), zero, value)

    def sums(self, units: int, weights: Any, at: Any, inputs: Any, below: Any) -> list[Any]:
        """Return bias plus products for each of some units: a loop over their inputs."""
        builder, before = self.builder, self.builder.block
        biases = [self.number(weights, at, unit) for unit in range(units)]
        loop, end = (builder.append_basic_block(name) for name in ("inputs", "summed"))
        builder.branch(loop)
        builder.position_at_end(loop)
        place, sums = builder.phi(_WORD), [builder.phi(_VECTOR) for _ in biases]
        values = builder.load(self.vector_at(below, builder.mul(place, _WORD(LANES))), align=4)
        ahead = builder.add(place, _WORD(1))
        row = builder.add(at, builder.mul(ahead, _WORD(units)))
        more = [
            builder.call(self._fused, [self.number(weights, row, unit), values, each])
            for unit, each in enumerate(sums)
        ]
        builder.cbranch(builder.icmp_signed("<", ahead, inputs), loop, end)
        pairs = zip([place, *sums], [_WORD(0), *biases], [ahead, *more], strict=True)
        for each, begin, later in pairs:
            each.add_incoming(begin, before)
            each.add_incoming(later, loop)
        builder.position_at_end(end)
        return more


def _units(count: int, *, with_relu: bool) -> Any:
    """Return what computes some units of a layer for LANES candidates.

    It takes the array of biases and weights, where these units begin in it, their inputs, the
    inputs' values, the array of results, and where these begin in it.
    """

    def unit(  # numba counts the parameters
        _context: Any, weights: Any, at: Any, inputs: Any, below: Any, above: Any, to: Any
    ) -> Any:
        def code(target: Any, builder: Any, signature: Any, given: Any) -> Any:
            starts = {
                place: target.make_array(signature.args[place])(target, builder, given[place]).data
                for place in (0, 3, 4)
            }
            write = _Code(builder)
            sums = write.sums(count, starts[0], given[1], given[2], starts[3])
            for place, each in enumerate(sums):
                at_unit = builder.add(given[5], _WORD(place * LANES))
                pointer = write.vector_at(starts[4], at_unit)
                builder.store(write.relu(each) if with_relu else each, pointer, align=4)
            return target.get_dummy_value()

        whole = types.int64
        return types.void(weights, whole, whole, below, above, whole), code

    return intrinsic(unit)


some_units: Any = _units(TOGETHER, with_relu=True)
one_unit: Any = _units(1, with_relu=False)
