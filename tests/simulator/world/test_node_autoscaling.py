"""The autoscaled groups of a scenario are those of its world."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from greensched_core.errors import BadInput
from greensched_simulator.scenario.model import Scenario
from greensched_simulator.world.scenario_loading import parse_scenario
from greensched_simulator.world.world import build_world


def scenario(*autoscaling: int | None, **more: Any) -> Scenario:
    """Return a scenario with groups of two nodes and these minimums; None: not autoscaled.

    `more` replaces fields of all groups.
    """
    groups = [
        {"name": f"group-{number}", "count": 2, "hardware": "epyc-7763-1s", "cpu_cores": 8,
         "memory": "8Gi", "zone": "A", "sleep": {"watts": 0, "wake": f"{number + 1}m"}}
        | ({} if least is None else {"autoscaling": {"min": least}}) | more
        for number, least in enumerate(autoscaling)
    ]  # fmt: skip
    content = {
        "name": "small",
        "start": "2023-06-01T00:00:00Z",
        "length": "1h",
        "cluster": {"nodes": groups},
        "grids": {"A": {"carbon": {"constant": 1}, "price": {"constant": 1, "unit": "EUR/MWh"}}},
        "workload": {"generator": {"jobs": 1, "cpu_cores": [1]}},
    }
    return parse_scenario(content, Path())


@pytest.mark.parametrize(("least", "more", "fault"), [
    pytest.param(3, {}, r"\[0\].autoscaling.min: the group has 2 nodes: give at most 2", id="many"),
    pytest.param(2, {"count": 1}, "the group has 1 node: give at most 1", id="more-than-one"),
    pytest.param(-1, {}, r"autoscaling.min: .* greater than or equal to 0", id="negative"),
    pytest.param(0, {"sleep": None}, r"\[0\].autoscaling: .*: give sleep, too", id="no-sleep"),
])  # fmt: skip
def test_faults_say_what_is_wrong_and_where(least: int, more: dict[str, Any], fault: str) -> None:
    with pytest.raises(BadInput, match=fault):
        scenario(least, **more)


def test_all_nodes_of_a_group_may_be_up_at_first() -> None:
    assert build_world(scenario(2)).autoscaled.min_nodes.tolist() == [2]


def test_each_node_has_its_group_and_its_time_to_start() -> None:
    groups = build_world(scenario(None, 2, 0)).autoscaled
    assert groups.group.tolist() == [-1, -1, 0, 0, 1, 1]
    assert groups.min_nodes.tolist() == [2, 0]
    assert groups.wake_s.tolist() == [60.0, 60.0, 120.0, 120.0, 180.0, 180.0]


def test_equal_seeds_give_equal_draws_and_others_do_not() -> None:
    one, same, other = (build_world(scenario(0), seed).autoscaled.draws for seed in (1, 1, 2))
    assert one.tobytes() == same.tobytes() != other.tobytes()
    assert ((one >= 0.0) & (one < 1.0)).all()
    assert np.unique(one).size > 1000


@pytest.mark.parametrize(("groups", "nodes_sleep"), [
    pytest.param((0, 1), False, id="all-autoscaled"),
    pytest.param((0, None), True, id="some"),
])  # fmt: skip
def test_sleep_rules_have_no_effect_where_all_nodes_are_autoscaled(
    groups: tuple[int | None, ...], nodes_sleep: bool
) -> None:
    assert scenario(*groups).able.nodes_sleep == nodes_sleep
