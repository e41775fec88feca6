"""Work that may pause waits for room as other work does, and does not start where there is none."""

import numpy as np
import pytest

from greensched_policies.encoding.weights import Weights
from greensched_policies.planning.core_plan import CorePlan
from greensched_policies.planning.outlook import outlook_of
from greensched_policies.planning.planning import StartReason, Thresholds
from greensched_policies.planning.slot_planning import Interruptible, SlotPlan, plan_slots
from greensched_policies.rules.catalogue import WHEN_RULES

SLOT_S = 900.0
# A start now would emit nearly as much as one later: not worth a wait. One in between emits more.
GRAMS = [300.0] * 4 + [299.0] * 14 + [500.0] * 2 + [299.0] * 20


def planned(
    taken_gpus: list[float], *, waits_for_room: bool = True, running_in: int = -1,
    latest: int = 20, carbon: list[float] = GRAMS, price: float = 50.0,
) -> SlotPlan:  # fmt: skip
    """Plan two slots of work with a GPU in a zone of four, of which so many are taken."""
    plan = CorePlan(np.array([100.0]), 0.0, SLOT_S, 100, np.array([4.0]))
    for place, gpus in enumerate(taken_gpus):
        plan.keep(0, place * SLOT_S, (place + 1) * SLOT_S, 1.0, gpus)
    work = Interruptible(
        runtime_s=np.array([2 * SLOT_S]), latest_s=latest * SLOT_S, cpu_cores=1.0,
        power_w=np.array([3600.0]), weights=Weights(0.0, 1.0, 0.0), gpus=1.0,
        when=WHEN_RULES["planned-window"], restart_s=60.0, most_restarts=9.0,
        waits_for_room=waits_for_room, running_in=running_in,
    )  # fmt: skip
    grams = np.array([carbon])
    found = plan_slots(
        outlook_of(0.0, SLOT_S, grams, np.full(grams.shape, price)), plan, work, 0.0,
        thresholds=Thresholds(least_saving=0.02),
    )  # fmt: skip
    assert found is not None
    return found


def test_with_room_now_a_small_saving_is_no_reason_to_wait() -> None:
    found = planned([])
    assert found.run_segments == ((0.0, 2 * SLOT_S),)
    assert found.chosen.why is StartReason.SAVES_TOO_LITTLE


@pytest.mark.parametrize(
    ("taken_gpus", "first"),
    [
        pytest.param([4.0] * 7, 7, id="until-some-is-free"),
        pytest.param([4.0] * 3 + [0.0] + [4.0] * 3, 7, id="a-gap-is-too-short-for-the-run"),
        pytest.param([4.0] * 3 + [0.0, 0.0] + [4.0] * 3, 3, id="a-gap-of-its-length-is-room"),
        pytest.param([0.0, 4.0, 4.0], 3, id="room-now-that-ends-before-the-run"),
    ],
)
def test_without_room_now_it_waits_for_the_first_run_that_has_some(
    taken_gpus: list[float], first: int
) -> None:
    found = planned(taken_gpus)
    assert found.run_segments == ((first * SLOT_S, (first + 2) * SLOT_S),)
    assert (found.chosen.why, found.chosen.has_room) == (StartReason.NO_ROOM, True)


def test_where_nodes_are_added_for_pending_pods_it_does_not_wait_for_room() -> None:
    found = planned([4.0] * 7, waits_for_room=False)
    assert found.run_segments[0][0] == 0.0
    assert not found.chosen.has_room


@pytest.mark.parametrize("carbon", [
    pytest.param([300.0] * 40, id="always-alike"),
    pytest.param([300.0] * 4 + [299.0] * 36, id="nearly-alike"),
    pytest.param([np.nan] * 40, id="not-known"),
])  # fmt: skip
def test_where_it_does_not_matter_when_it_runs_it_does_not_wait_for_room(
    carbon: list[float],
) -> None:
    """It queues as without GreenSched, and so does work that runs in one piece (decision 19)."""
    assert planned([4.0] * 7, carbon=carbon).run_segments[0][0] == 0.0
    assert planned([4.0] * 7, carbon=carbon, price=np.nan).run_segments[0][0] == 0.0


def test_if_there_is_no_room_until_its_latest_start_it_starts_now() -> None:
    found = planned([4.0] * 40, latest=10)
    assert found.run_segments[0][0] == 0.0


def test_running_work_has_its_room() -> None:
    found = planned([4.0] * 7, running_in=0)
    assert found.run_segments[0][0] == 0.0
