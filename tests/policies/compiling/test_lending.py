"""A structure that is lent: functions that count no references read it, and it keeps its arrays."""

import gc
import sys
from typing import Any

import numpy as np
import pytest
from numba import types
from numba.experimental import structref

from greensched_policies.compiling.compiled import borrowing, fast
from greensched_policies.compiling.lending import lent_structure
from greensched_policies.costs.cost import Floats

pytestmark = pytest.mark.engine


@structref.register
class _LedgerType(types.StructRef):
    def preprocess_fields(self, fields: Any) -> Any:
        """Have fields hold any value of their kind."""
        return tuple((name, types.unliteral(kind)) for name, kind in fields)  # type: ignore[no-untyped-call]  # numba has no types


class Ledger(structref.StructRefProxy):
    """A pair of columns, and the lines that were written, with the address of another one."""

    def __new__(cls, *fields: Any) -> Any:
        """Return a structure of all fields."""
        return structref.StructRefProxy.__new__(cls, *fields)  # type: ignore[no-untyped-call]  # numba has no types


structref.define_proxy(Ledger, _LedgerType, ["columns", "lines"])  # type: ignore[no-untyped-call]  # numba has no types


@fast
def kept(columns: tuple[Floats, Floats]) -> Any:
    """Return a structure with some columns."""
    return Ledger(columns, [0.0 for _ in range(0)])


@borrowing
def add_up(ledger: Any) -> None:
    """Add the second column to the first one."""
    into, more = ledger.columns
    for place in range(into.size):
        into[place] += more[place]


@fast
def write(ledger: Any) -> None:
    """Write the first column down."""
    for value in ledger.columns[0]:
        ledger.lines.append(value)


@fast
def worked_on(ledger: Any) -> tuple[Floats, int]:
    """Return the first column after the work, and how many lines there are."""
    lent = lent_structure(ledger)
    add_up(lent)
    write(lent)
    return ledger.columns[0], len(ledger.lines)


def test_a_structure_keeps_the_arrays_that_are_read_of_it_when_it_is_lent() -> None:
    first = np.arange(1_000.0)
    ledger = kept((first, np.ones(1_000)))
    holders = sys.getrefcount(first)
    for turn in range(1, 4):
        gc.collect()
        column, lines = worked_on(ledger)
        assert column.tolist() == (np.arange(1_000.0) + turn).tolist()
        assert lines == 1_000 * turn
    del column
    assert sys.getrefcount(first) == holders
    del ledger
    assert sys.getrefcount(first) == holders - 1
