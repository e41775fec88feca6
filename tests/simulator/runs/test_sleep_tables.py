"""A sleep rule whose seconds cannot be is refused by name, before anything runs."""

import numpy as np
import pytest

from greensched_core.errors import BadInput
from greensched_policies.costs.cost import Floats
from greensched_policies.costs.sleeping import SleepColumns
from greensched_simulator.runs.sleep_tables import stays_awake_s

NODES = SleepColumns(*(np.ones((1, 3)),) * 3)


@pytest.mark.parametrize("wrong", [-1.0, np.nan])
def test_less_than_nothing_is_refused_with_the_rule_and_the_node(wrong: float) -> None:
    def hasty(nodes: SleepColumns) -> Floats:
        return np.array([[0.0, wrong, np.inf]])

    told = rf"rule hasty keeps node 1 \(counted from 0\) awake for {wrong:g} s"
    with pytest.raises(BadInput, match=told):
        stays_awake_s(hasty, NODES)


def test_at_once_and_never_are_fine() -> None:
    def either(nodes: SleepColumns) -> Floats:
        return np.array([[0.0, 600.0, np.inf]])

    assert stays_awake_s(either, NODES).tolist() == [0.0, 600.0, np.inf]
