"""What `when` and `how_fast` policies see alike: relative columns, and the context."""

from typing import Any

from greensched_policies.compiling.compiled import borrowing, compiled, inlined
from greensched_policies.costs.cost import Floats
from greensched_policies.encoding.observation import DecisionToMake, relative_scale, work_columns
from greensched_policies.encoding.timing import timing_columns
from greensched_policies.kernel.seeing_nodes import Singles

_relative_scale = compiled(relative_scale, inlined)
_work_columns = compiled(work_columns, inlined)
_timing_columns = compiled(timing_columns, inlined)


@borrowing
def fill_relative(values: Floats, seen: Singles) -> None:
    """Divide values by their mean magnitude, into `seen`."""
    total = 0.0
    for place in range(values.size):
        total += abs(values[place])
    factor, offset = _relative_scale(total / values.size)
    for place in range(values.size):
        seen[place] = values[place] * factor + offset


@borrowing
def fill_shared(asked: DecisionToMake, count: int, context: Singles) -> None:
    """Fill in the context of one decision over `count` candidates, [15]; numbers are asked."""
    work: Any = _work_columns(asked.workload, asked.weights, True, asked.mean_memory, count)
    context[0], context[1], context[2], context[3] = work[0], work[1], work[2], work[3]
    context[4], context[5], context[6], context[7] = work[4], work[5], work[6], work[7]
    told: Any = _timing_columns(asked.timing, asked.workload.runtime_s)
    context[8], context[9], context[10] = told[0], told[1], told[2]
    context[11], context[12], context[13], context[14] = told[3], told[4], told[5], told[6]
