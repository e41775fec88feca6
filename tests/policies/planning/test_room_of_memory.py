"""Work finds room where both cores and memory have it, whichever a zone runs short of."""

import numpy as np
import pytest

from greensched_policies.planning.core_plan import CorePlan
from greensched_policies.planning.planning import plan_all
from tests.policies.planning.one_start import choose_start
from tests.policies.planning.test_planning import MIDNIGHT_S, SLOT_S, grid, slot_of, work

GIB = 2.0**30
CLEAN_FIRST = [500.0, 100.0, 200.0, 300.0]


def plan_of(*memory_gib: float) -> CorePlan:
    """Return an empty plan of zones with 100 cores."""
    capacity, memory = np.full(len(memory_gib), 100.0), np.array(memory_gib) * GIB
    return CorePlan(capacity, MIDNIGHT_S, SLOT_S, 50, memory_bytes=memory)


@pytest.mark.parametrize(
    ("memory_gib", "starts"),
    [
        pytest.param(0.0, [1, 1, 1], id="no-memory-is-requested"),
        pytest.param(20.0, [1, 1, 1], id="all-fit"),
        pytest.param(40.0, [3, 1, 2], id="the-clean-slot-has-memory-for-one"),
    ],
)
def test_no_more_start_in_the_clean_slot_than_find_memory(
    memory_gib: float, starts: list[int]
) -> None:
    asked = [work(slack=slack)._replace(memory_bytes=memory_gib * GIB) for slack in (3, 1, 2)]
    found = plan_all(grid(CLEAN_FIRST), plan_of(80.0), asked, MIDNIGHT_S)
    assert [slot_of(each) for each in found] == starts


def test_memory_that_is_used_takes_room_and_gives_it_back() -> None:
    plan, asked = plan_of(100.0), work(slack=3)._replace(memory_bytes=10.0 * GIB)
    plan.keep(0, MIDNIGHT_S + SLOT_S, MIDNIGHT_S + 2 * SLOT_S, 1.0, memory_bytes=81.0 * GIB)
    assert slot_of(choose_start(grid(CLEAN_FIRST), plan, asked, MIDNIGHT_S)) == 2
    plan = plan_of(100.0)
    plan.keep(0, MIDNIGHT_S + SLOT_S, MIDNIGHT_S + 2 * SLOT_S, 1.0, memory_bytes=81.0 * GIB)
    plan.keep(0, MIDNIGHT_S + SLOT_S, MIDNIGHT_S + 2 * SLOT_S, -1.0, memory_bytes=-81.0 * GIB)
    assert slot_of(choose_start(grid(CLEAN_FIRST), plan, asked, MIDNIGHT_S)) == 1


def test_a_zone_whose_memory_is_not_known_has_room() -> None:
    asked = work(slack=3)._replace(memory_bytes=1e6 * GIB)
    assert slot_of(choose_start(grid(CLEAN_FIRST), plan_of(0.0), asked, MIDNIGHT_S)) == 1


def test_there_is_room_while_a_tenth_of_the_memory_is_left() -> None:
    plan = plan_of(100.0)
    until_s = MIDNIGHT_S + SLOT_S
    plan.keep(0, MIDNIGHT_S, until_s, 1.0, memory_bytes=90.0 * GIB)
    assert plan.has_room(0, MIDNIGHT_S, until_s, with_gpus=False)
    plan.keep(0, MIDNIGHT_S, until_s, 0.0, memory_bytes=1.0 * GIB)
    assert not plan.has_room(0, MIDNIGHT_S, until_s, with_gpus=False)
