"""How much of each job's run scales with CPU frequency is drawn, apart from all else."""

from typing import Any

import pytest

from greensched_core.errors import BadInput
from greensched_policies.costs.capping import FREQUENCY_SENSITIVITIES
from greensched_simulator.world.scenario_loading import parse_scenario
from greensched_simulator.world.world import World, build_world

GRID = {"carbon": {"constant": 100}, "price": {"constant": 50, "unit": "EUR/MWh"}}


def world(**workload: Any) -> World:
    node = {
        "name": "node", "count": 4, "hardware": "epyc-7763-1s", "cpu_cores": 128,
        "memory": "512Gi", "zone": "A",
    }  # fmt: skip
    content = {
        "name": "small", "start": "2023-06-01T06:00:00Z", "length": "1d", "currency": "EUR",
        "cluster": {"nodes": [node]}, "grids": {"A": GRID},
        "workload": {"generator": {"jobs": 60}} | workload,
    }  # fmt: skip
    return build_world(parse_scenario(content), 3)


def test_each_job_draws_one_of_the_given_values() -> None:
    found = world(frequency_sensitivity=[0.2, 0.9]).jobs.frequency_sensitivity
    assert set(found.tolist()) == {0.2, 0.9}


def test_by_default_it_draws_one_of_the_measured_values() -> None:
    found = world().jobs.frequency_sensitivity
    assert len(set(found.tolist())) > 3
    assert set(found.tolist()) <= set(FREQUENCY_SENSITIVITIES.tolist())


def test_other_values_shift_no_other_column() -> None:
    usual, other = world().jobs, world(frequency_sensitivity=[0.5]).jobs
    for name in set(usual._fields) - {"frequency_sensitivity"}:
        assert getattr(usual, name).tobytes() == getattr(other, name).tobytes()


@pytest.mark.parametrize("values", [[], [-0.1], [1.1], [float("nan")]])
def test_what_is_no_share_is_refused(values: list[float]) -> None:
    with pytest.raises(BadInput, match="frequency_sensitivity"):
        world(frequency_sensitivity=values)
