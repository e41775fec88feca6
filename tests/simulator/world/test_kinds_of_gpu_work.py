"""How much of a GPU's range of watts each job draws is given, drawn or assumed."""

from pathlib import Path
from typing import Any

import pytest

from greensched_core.errors import BadInput
from greensched_simulator.policy import policy_named
from greensched_simulator.runs.simulation import bill_of, simulate
from greensched_simulator.world.scenario_loading import parse_scenario
from greensched_simulator.world.world import World, build_world

GRID = {"carbon": {"constant": 100}, "price": {"constant": 50, "unit": "EUR/MWh"}}
HEADER = "name,arrival_s,runtime_s,cpu_cores,memory_mib,gpus,gpu_ratio\n"
HOUR = 3600.0


def world(folder: Path = Path(), assumed: float = 0.6, **workload: Any) -> World:
    node = {
        "name": "node", "count": 4, "hardware": "epyc-7763-1s", "cpu_cores": 128,
        "memory": "512Gi", "gpus": {"model": "h100-sxm", "count": 8}, "zone": "A", "pue": 1,
    }  # fmt: skip
    content = {
        "name": "small", "start": "2023-06-01T06:00:00Z", "length": "1d", "currency": "EUR",
        "cluster": {"nodes": [node]}, "grids": {"A": GRID}, "workload": workload,
        "assumptions": {"gpu_ratio": assumed},
    }  # fmt: skip
    return build_world(parse_scenario(content, folder), 3)


def generated(assumed: float = 0.6, **workload: Any) -> World:
    return world(assumed=assumed, generator={"jobs": 60, "gpu_share": 0.5}, **workload)


def test_by_default_all_work_draws_what_is_assumed() -> None:
    assert set(generated().jobs.gpu_ratio.tolist()) == {0.6}
    assert set(generated(assumed=0.3).jobs.gpu_ratio.tolist()) == {0.3}


def test_each_job_draws_one_of_the_given_shares() -> None:
    assert set(generated(gpu_ratio=[0.2, 0.95]).jobs.gpu_ratio.tolist()) == {0.2, 0.95}


def test_other_shares_shift_no_other_column() -> None:
    usual, other = generated().jobs, generated(gpu_ratio=[0.2, 0.95]).jobs
    for name in set(usual._fields) - {"gpu_ratio"}:
        assert getattr(usual, name).tobytes() == getattr(other, name).tobytes()


def test_what_a_trace_gives_counts_before_what_is_drawn(tmp_path: Path) -> None:
    rows = "a,0,3600,1,1024,1,0.95\nb,0,3600,1,1024,1,\n"
    (tmp_path / "jobs.csv").write_text(HEADER + rows)
    trace = {"file": "jobs.csv"}
    assert world(tmp_path, trace=trace).jobs.gpu_ratio.tolist() == [0.95, 0.6]
    assert world(tmp_path, trace=trace, gpu_ratio=[0.1]).jobs.gpu_ratio.tolist() == [0.95, 0.1]


def test_a_training_is_billed_more_than_light_work_on_the_same_gpu(tmp_path: Path) -> None:
    """An H100 idles at 87.5 W and draws 700 W at most."""
    active_j = []
    for share in (1.0, 0.1):
        (tmp_path / "jobs.csv").write_text(HEADER + f"a,0,3600,0.001,1024,2,{share}\n")
        one = world(tmp_path, trace={"file": "jobs.csv"})
        schedule = simulate(one, policy_named("run-now"))
        active_j.append(float(bill_of(one, schedule, 4 * HOUR).energy_active_j.sum()))
    gpu_j = 2 * 612.5 * float(one.jobs.runtime_s[0] / one.nodes.speed[0])
    assert active_j[0] - active_j[1] == pytest.approx(0.9 * gpu_j)


@pytest.mark.parametrize("values", [[], [-0.1], [1.1], [float("nan")], 0.5])
def test_what_is_no_list_of_shares_is_refused(values: Any) -> None:
    with pytest.raises(BadInput, match="workload.gpu_ratio"):
        generated(gpu_ratio=values)
