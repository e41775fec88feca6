"""What the compared day reckons itself, beside the bill."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.parity import grams_of_kilowatt
from greensched_simulator.testing.small_worlds import make_world

HOUR_S = 3600.0
JOB = {"arrival_s": 0.0, "runtime_s": 60.0, "cpu_cores": 1.0, "memory_bytes": 1.0, "gpus": 0.0}
GRID = [(0.0, 100.0, 1.0), (HOUR_S, 200.0, 1.0), (2 * HOUR_S, np.nan, np.nan)]


@pytest.mark.parametrize(
    ("start_h", "hours", "grams"),
    [
        pytest.param(0.5, 1.0, 150.0, id="over-two-steps"),
        pytest.param(1.0, 1.0, 200.0, id="until-the-data-ends"),
        pytest.param(1.5, 1.0, np.nan, id="beyond-the-data"),
    ],
)
def test_a_kilowatt_emits_what_each_hour_of_its_run_has(
    start_h: float, hours: float, grams: float
) -> None:
    world = make_world([JOB], [{}], [GRID])
    found = grams_of_kilowatt(world, 0, start_h * HOUR_S, hours * HOUR_S)
    assert found == pytest.approx(grams, nan_ok=True)
