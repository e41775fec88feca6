"""Where a plan has room: for work that queues, and to the last GPU but not to the last core."""

import numpy as np
import pytest

from greensched_policies.planning.core_plan import CorePlan
from greensched_policies.planning.planning import keep_queued
from tests.policies.planning.one_start import choose_start
from tests.policies.planning.test_planning import MIDNIGHT_S, SLOT_S, empty, grid, slot_of, work


def test_queued_work_gets_the_first_room_in_the_order_of_the_queue() -> None:
    plan = empty(10.0)
    plan.keep(0, MIDNIGHT_S, MIDNIGHT_S + 2 * SLOT_S, 9.0)
    asked = [work(cores=5.0, slack=-9), work(cores=4.0), work(cores=3.0)]
    kept = keep_queued(grid([100.0] * 20), plan, asked, MIDNIGHT_S)
    assert [each and slot_of_begin(each.begin_s) for each in kept] == [2, 2, 3]
    assert plan.cores[0, :5].tolist() == [9.0, 9.0, 9.0, 3.0, 0.0]
    nowhere = [work(runs_s=np.array([np.inf]))]
    assert keep_queued(grid([100.0] * 20), plan, nowhere, MIDNIGHT_S) == [None]


@pytest.mark.parametrize("gpus", [1.0, 3.0, 6.0, 37.0])
def test_the_last_gpu_of_a_zone_is_room_but_its_last_core_is_not(gpus: float) -> None:
    """Shares of some numbers of GPUs are rounded up."""
    carbon = [100.0] + [500.0] * 8

    def slot(cores: float, gpus_left: float) -> float:
        plan = CorePlan(np.array([100.0]), MIDNIGHT_S, SLOT_S, 50, np.array([gpus]))
        plan.keep(0, MIDNIGHT_S, MIDNIGHT_S + 3 * SLOT_S, 0.0, gpus - gpus_left)
        asked = work(cores=cores)._replace(gpus=1.0)
        return slot_of(choose_start(grid(carbon), plan, asked, MIDNIGHT_S))

    assert slot(90.0, 1.0) == 0
    assert slot(85.0, 0.5) == 3
    assert slot(91.0, 1.0) == 0, "no start has room for 91 of 100 cores: it is let go"


@pytest.mark.parametrize(("cores", "pods", "of_zone"), [
    pytest.param(0.3, 48, 16.0, id="a-sum-that-is-rounded-up"),
    pytest.param(0.27, 1, 0.3, id="a-share-that-is-rounded-up"),
])  # fmt: skip
def test_work_that_fills_nine_tenths_of_a_zone_exactly_has_room(
    cores: float, pods: int, of_zone: float
) -> None:
    plan, asked = empty(of_zone), [work(cores=cores)] * pods
    kept = keep_queued(grid([100.0] * 20), plan, asked, MIDNIGHT_S)
    assert [each and slot_of_begin(each.begin_s) for each in kept] == [0.0] * pods
    assert plan.has_room(0, MIDNIGHT_S, MIDNIGHT_S + SLOT_S, with_gpus=False)
    plan.keep(0, MIDNIGHT_S, MIDNIGHT_S + SLOT_S, 0.001)
    assert not plan.has_room(0, MIDNIGHT_S, MIDNIGHT_S + SLOT_S, with_gpus=False)


def slot_of_begin(begin_s: float) -> float:
    return (begin_s - MIDNIGHT_S) / SLOT_S
