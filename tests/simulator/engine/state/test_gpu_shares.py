"""Jobs that share GPUs: a part of one must be free on a single GPU."""

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_simulator.engine.state.gpu_shares import give_gpus, have_room, how_often, take_gpus
from greensched_simulator.policy import policy_named
from greensched_simulator.runs.simulation import bill_of, simulate
from greensched_simulator.testing.small_worlds import make_world
from greensched_simulator.world.scenario_loading import parse_scenario
from greensched_simulator.world.world import World, build_world

HOUR = 3600.0
NODE = {"gpu_capacity": 2.0, "gpu_idle_w": 20.0, "gpu_peak_w": 120.0}


def starts(*gpus: float) -> list[float]:
    """Return when jobs of an hour start that ask for so many GPUs of the two there are."""
    world = make_world([{"gpus": each} for each in gpus], [NODE])
    hours: list[float] = (simulate(world, policy_named("run-now")).start_s / HOUR).tolist()
    return hours


@pytest.mark.parametrize(("gpus", "expected"), [
    pytest.param((0.5, 0.5, 0.5, 0.5), [0, 0, 0, 0], id="halves"),
    pytest.param((0.6, 0.6, 0.6), [0, 0, 1], id="parts-of-two-gpus-are-no-gpu"),
    pytest.param((0.4, 1.0, 0.6), [0, 0, 0], id="the-part-that-is-left"),
    pytest.param((0.4, 2.0), [0, 1], id="both-gpus"),
    pytest.param((0.3, 0.8, 0.2, 0.7), [0, 0, 0, 0], id="best-fit"),
    pytest.param((0.3, 0.8, 0.3, 1.0), [0, 0, 0, 1], id="no-whole-gpu-is-left"),
])  # fmt: skip
def test_a_job_starts_when_its_part_is_free_on_one_gpu(
    gpus: tuple[float, ...], expected: list[float]
) -> None:
    assert starts(*gpus) == expected


def test_the_bill_takes_the_part_of_a_gpus_range_of_watts() -> None:
    world = make_world([{"gpus": 0.25, "cpu_cores": 0.0}], [NODE])
    bill = bill_of(world, simulate(world, policy_named("run-now")), HOUR)
    assert bill.energy_active_j.tolist() == [0.25 * 0.8 * 100.0 * HOUR]


def test_workers_of_one_job_may_share_a_gpu() -> None:
    world = make_world([{"gpus": 0.5, "workers": 4.0}, {"gpus": 0.5}], [NODE])
    schedule = simulate(world, policy_named("run-now+easy"))
    assert schedule.start_s.tolist() == [0.0, HOUR]


def test_who_is_expected_to_end_in_time_shares_a_gpu_beside_a_reservation() -> None:
    jobs = [{"gpus": 0.5}, {"gpus": 2.0, "arrival_s": 1.0},
            {"gpus": 0.5, "runtime_s": 600.0, "arrival_s": 2.0},
            {"gpus": 0.5, "runtime_s": 2 * HOUR, "arrival_s": 3.0}]  # fmt: skip
    schedule = simulate(make_world(jobs, [NODE]), policy_named("run-now+easy"))
    assert schedule.start_s.tolist() == [0.0, HOUR, 2.0, 2 * HOUR]


requests = st.lists(
    st.one_of(st.floats(0.01, 1.0), st.sampled_from([0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 3.0])),
    min_size=1,
    max_size=30,
)


@given(requests=requests, dice=st.randoms(use_true_random=False))
def test_no_gpu_is_ever_promised_twice_and_all_comes_back(
    requests: list[float], dice: random.Random
) -> None:
    shares = np.array([[1.0, 1.0, 1.0, -1.0]])
    held: list[tuple[int, float]] = []
    for gpus in requests:
        times = how_often(shares, 0, gpus, 3.0)
        assert have_room(shares, 0, gpus) == (times >= 1.0 - 1e-6)
        if held and dice.random() < 0.4:
            give_gpus(shares, 0, *held.pop(dice.randrange(len(held))))
        elif have_room(shares, 0, gpus):
            held.append((take_gpus(shares, 0, gpus), gpus))
            assert held[-1][0].bit_count() == max(gpus, 1.0)
        taken = [sum(min(gpus, 1.0) for mask, gpus in held if mask >> gpu & 1)
                 for gpu in range(3)]  # fmt: skip
        assert np.allclose(shares[0, :3], 1.0 - np.array(taken), atol=1e-6)
        assert shares[0, 3] == -1.0
    for mask, gpus in held:
        give_gpus(shares, 0, mask, gpus)
    assert np.allclose(shares, [[1.0, 1.0, 1.0, -1.0]], atol=1e-6)


def drawn(folder: Path, *, share: bool) -> World:
    """Return the world of an openb trace with a pod that asks for a quarter of a GPU."""
    (folder / "openb.csv").write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time\n"
        "a,1000,10,1,250,0,60\nb,1000,10,2,1000,0,60\n"
    )
    scenario = {
        "name": "gpus", "start": "2023-06-01T00:00:00Z", "length": "1d",
        "cluster": {"nodes": [{"name": "node", "count": 1, "hardware": "epyc-7763-1s",
                               "cpu_cores": 8, "memory": "64Gi", "zone": "A",
                               "gpus": {"count": 4, "model": "v100-sxm"}}]},
        "grids": {"A": {"carbon": {"constant": 1}, "price": {"constant": 1, "unit": "EUR/MWh"}}},
        "workload": {"trace": {"file": "openb.csv"}},
        "assumptions": {"share_gpus": share},
    }  # fmt: skip
    return build_world(parse_scenario(scenario, folder))


def test_a_part_of_a_gpu_is_a_whole_one_unless_gpus_are_shared(tmp_path: Path) -> None:
    assert drawn(tmp_path, share=True).jobs.gpus.tolist() == [0.25, 2.0]
    whole = drawn(tmp_path, share=False)
    assert whole.jobs.gpus.tolist() == [1.0, 2.0]
    assert any("1 jobs request a part of a GPU" in note for note in whole.notes)
