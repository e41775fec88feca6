"""Watts that a power budget is compared with: the machine's, and those of its GPUs."""

from typing import Any

import pytest

from greensched_core.power.hardware import Gpu
from greensched_core.testing import make_node, make_workload
from greensched_extender.filtering import predicted_watts

World = Any

IDLE_W = 100.0
GPUS_IDLE_W = 4 * 50.0
BUSY_W = 0.6 * (400.0 - 50.0)  # of one GPU, more than idle


@pytest.mark.parametrize(
    ("taken", "asked", "busy"),
    [
        pytest.param(0, 0, 0, id="idle-gpus-draw-too"),
        pytest.param(0, 1, 1, id="one"),
        pytest.param(1, 2, 3, id="beside-another-pods"),
        pytest.param(3, 1, 4, id="the-last-one"),
        pytest.param(3, 2, 4, id="one-more-than-there-are"),
        pytest.param(0, 9, 4, id="many-more-than-there-are"),
    ],
)
def test_all_gpus_idle_and_no_more_are_busy_than_there_are(
    world: World, taken: int, asked: int, busy: int
) -> None:
    gpu = Gpu("A100", 4, idle_w=50.0, peak_w=400.0)
    world.add(make_node("a", gpu=gpu, idle_w=IDLE_W))
    world.snapshot.put_pod("u", "a", (0.0, 0.0, float(taken)))
    view = world.snapshot.view()
    asks = make_workload(cpu_cores=0.0, gpus=float(asked))
    (watts,) = predicted_watts(view, view.names.rows(["a"]), asks, world.assumptions)
    assert watts == pytest.approx(IDLE_W + GPUS_IDLE_W + busy * BUSY_W)
