"""Every rule that the simulator's engine calls is one that numba can compile."""

from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pytest
from numba import types

from greensched_core.errors import BadInput
from greensched_policies.compiling.compiled import TRIED, callee, compiled
from greensched_policies.costs.pausing import PauseColumns
from greensched_policies.rules.catalogue import WHERE_RULES
from greensched_simulator.engine.state.choices import COMPILED_RULES, compiled_rule


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, rules in COMPILED_RULES.items() for name in rules]
)
def test_the_simulator_compiles_each_rule(kind: str, name: str) -> None:
    (ready,) = compiled_rule(kind, name)
    assert callable(ready)


def all_alike(work: PauseColumns) -> npt.NDArray[np.float64]:
    cost: npt.NDArray[np.float64] = np.ones_like(work[0])
    return cost


def test_a_rule_that_python_has_called_still_has_an_address_for_the_engine() -> None:
    # Without one, numba takes it for a type of its own and compiles the engine for it: minutes.
    work = PauseColumns._make([np.ones(TRIED)] * len(PauseColumns._fields))
    assert compiled(all_alike)(work).shape == TRIED
    ready = callee(all_alike, np.float64, work)
    kind: Any = numba.typeof(ready)  # type: ignore[no-untyped-call]  # numba has no types
    assert isinstance(kind[0], types.FunctionType)


def by_the_median(
    nodes: npt.NDArray[np.float32], context: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    cost: npt.NDArray[np.float32] = nodes[:, :, 0] - np.median(
        nodes[:, :, 0], axis=1, keepdims=True
    ).astype(np.float32)
    return cost


def test_a_rule_that_only_numpy_can_run_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(WHERE_RULES, "by-the-median", by_the_median)
    with pytest.raises(BadInput, match=r"numba cannot compile the rule by_the_median of \S+"):
        compiled_rule("where", "by-the-median")
