"""The same scenario, policy and seed give the same bytes, and another seed others."""

from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from greensched_simulator.policy import policy_named
from greensched_simulator.runs.simulation import bill_of, billed_until_s, simulate
from greensched_simulator.world.scenario_loading import parse_scenario
from greensched_simulator.world.world import build_world

SCENARIO = {
    "name": "seeded",
    "start": "2023-06-01T06:00:00Z",
    "length": "12h",
    "cluster": {
        "nodes": [
            {"name": name, "count": 2, "hardware": "epyc-7763-1s", "cpu_cores": 16,
             "memory": "64Gi", "zone": name}
            for name in ("coal", "solar")
        ]
    },
    "grids": {
        name: {"carbon": {"shape": name}, "price": {"shape": name}, "forecast_error": 0.1}
        for name in ("coal", "solar")
    },
    "workload": {"generator": {"jobs": 60}, "slack": "3h", "estimate_error": 0.3},
}  # fmt: skip


def columns(values: Any) -> list[bytes]:
    """Return the columns of a schedule or a bill as bytes."""
    return [np.asarray(column).tobytes() for column in values]


@settings(max_examples=10)
@given(st.integers(0, 2**32))
def test_the_same_seed_gives_the_same_bytes(seed: int) -> None:
    def run(seed: int) -> list[bytes]:
        world = build_world(parse_scenario(SCENARIO, Path()), seed)
        schedule = simulate(world, policy_named("carbon-time+topsis"))
        bill = bill_of(world, schedule, billed_until_s(world, schedule))
        return columns(schedule) + columns(vars(bill).values())

    assert run(seed) == run(seed)
    assert run(seed) != run(seed + 1)
