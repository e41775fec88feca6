"""Work that requests GPUs finds room where both cores and GPUs have it."""

import numpy as np
import pytest

from greensched_policies.encoding.weights import Weights
from greensched_policies.planning.core_plan import CorePlan
from greensched_policies.planning.outlook import outlook_of
from greensched_policies.planning.planning import StartRequest, plan_all
from greensched_policies.rules.catalogue import WHEN_RULES
from tests.policies.planning.one_start import choose_start

SLOT_S = 900.0


def asked(slack: int, gpus: float) -> StartRequest:
    """Return a run of one slot and one core, whose slack is told in slots."""
    return StartRequest(
        np.array([SLOT_S]), slack * SLOT_S, 1.0, np.array([100.0]), Weights(0.0, 1.0, 0.0),
        WHEN_RULES["planned-window"], gpus=gpus,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("gpus", "starts"),
    [
        pytest.param(0.0, [1, 1, 1], id="cores-have-room"),
        pytest.param(4.0, [3, 1, 1], id="two-have-all-gpus-of-the-best-hour"),
    ],
)
def test_no_more_start_in_the_best_hour_than_find_gpus(gpus: float, starts: list[int]) -> None:
    carbon = np.array([[200.0, 100.0, 150.0, 120.0]])
    outlook = outlook_of(0.0, SLOT_S, carbon, np.ones(carbon.shape))
    plan = CorePlan(np.array([10.0]), 0.0, SLOT_S, 20, np.array([9.0]))
    found = plan_all(outlook, plan, [asked(slack, gpus) for slack in (3, 1, 2)], 0.0)
    assert [each.start_s / SLOT_S for each in found] == starts


def test_gpus_that_run_take_room_and_give_it_back() -> None:
    """The clean hour is full of GPUs that run, so work with GPUs starts in the next best one."""
    carbon = np.array([[200.0, 100.0, 150.0], [900.0, 900.0, 900.0]])
    outlook = outlook_of(0.0, SLOT_S, carbon, np.ones(carbon.shape))
    plan = CorePlan(np.array([10.0, 10.0]), 0.0, SLOT_S, 10, np.array([4.0, 0.0]))
    work = asked(2, 1.0)._replace(runtime_s=np.full(2, SLOT_S), power_w=np.full(2, 100.0))
    plan.keep(0, SLOT_S, 2 * SLOT_S, 1.0, 4.0)
    taken = choose_start(outlook, plan, work, 0.0)
    without = choose_start(outlook, plan, work._replace(gpus=0.0), 0.0)
    plan.keep(0, SLOT_S, 2 * SLOT_S, -1.0, -4.0)
    free = choose_start(outlook, plan, work, 0.0)
    slots = [each.start_s / SLOT_S for each in (taken, without, free)]
    assert (slots, taken.run.zone) == ([2.0, 1.0, 1.0], 0)
