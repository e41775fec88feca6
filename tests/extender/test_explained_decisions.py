"""How many decisions on one pod are told, and which."""

from collections.abc import Callable
from typing import Any

import pytest

from greensched_core.testing import make_node

World = Any
MakePod = Callable[..., dict[str, Any]]


@pytest.mark.parametrize(("asked", "told"), [(1, 1), (5, 5), (6, 5), (12, 5)])
def test_of_a_pod_asked_for_often_the_five_latest_decisions_are_reported(
    world: World, pod: MakePod, asked: int, told: int
) -> None:
    world.add(make_node("a", zone="FR"), make_node("b", zone="PL"))
    for _ in range(asked):
        world.clock.advance(1.0)
        world.scores("a", "b", pod=pod("p"))
    latest = world.clock.now()
    times = [decision["decidedAt"] for decision in world.explanations().decisions("default", "p")]
    assert times == [latest - number for number in range(told)]
