"""Trainings of language models: runtimes from parameters, tokens and GPUs."""

from typing import Any

import numpy as np
import pytest

from greensched_core.errors import BadInput
from greensched_core.power.hardware import shipped_catalogue
from greensched_simulator.scenario.language_models import (
    PARAMETERS,
    PEAK_BF16_FLOP_PER_S,
    read_per_s,
    training_s,
    useful_flop_per_s,
)
from greensched_simulator.world.scenario_loading import Scenario, parse_scenario
from greensched_simulator.world.world import World, build_world

HOUR = 3600.0
FLAT = [100 + 10 * k for k in range(11)]
# 6 · 7e9 · 1e9 FLOPs at 8 · 312e12 · 0.5 FLOPs a second.
HALF_OF_EIGHT_A100_S = 4.2e19 / 1.248e15
OLD: dict[str, Any] = {
    "name": "old", "count": 2, "curve_watts": FLAT, "speed": 0.8, "cpu_cores": 64,
    "memory": "512Gi", "gpus": {"model": "a100-sxm", "count": 8}, "zone": "A",
}  # fmt: skip
NEW: dict[str, Any] = {**OLD, "name": "new", "gpus": {"model": "h100-sxm", "count": 8}}
TRAINING: dict[str, Any] = {
    "name": "train", "jobs": 40, "model": 7e9, "tokens": 1e9, "gpu": "a100-sxm", "gpus": 8,
    "mfu": 0.5, "cpu_cores": 16, "memory": "64Gi",
}  # fmt: skip
WHOLE: dict[str, Any] = {
    "name": "told",
    "start": "2023-06-01T00:00:00Z",
    "length": "2d",
    "cluster": {"nodes": [OLD]},
    "grids": {"A": {"carbon": {"shape": "solar"}, "price": {"constant": 90, "unit": "EUR/MWh"}}},
    "workload": {"trainings": [TRAINING]},
}


def scenario(
    *nodes: dict[str, Any], workload: dict[str, Any] | None = None, **training: Any
) -> Scenario:
    """Return a scenario of one kind of training, on old nodes if no others are told."""
    told = {"trainings": [{**TRAINING, **training}], **(workload or {})}
    return parse_scenario({**WHOLE, "cluster": {"nodes": list(nodes) or [OLD]}, "workload": told})


def notes(world: World) -> str:
    return "\n".join(world.notes)


@pytest.mark.parametrize(
    ("model", "tokens", "flop"),
    [
        pytest.param("gpt-3", 300e9, 3.14e23, id="Brown et al. 2020, table D.1"),
        pytest.param("llama-3.1-405b", 15.6e12, 3.8e25, id="Grattafiori et al. 2024, section 3.2"),
    ],
)
def test_six_flops_a_parameter_and_token_are_what_papers_tell(
    model: str, tokens: float, flop: float
) -> None:
    assert training_s(PARAMETERS[model], tokens, 1.0) == pytest.approx(flop, rel=0.005)


def test_a_prompt_is_read_by_two_flops_a_parameter() -> None:
    flop_per_s = useful_flop_per_s("h100-sxm", 2, 0.4)
    assert flop_per_s == pytest.approx(2 * 989.5e12 * 0.4)
    assert read_per_s(10e9, flop_per_s) == pytest.approx(39_580.0)


def test_every_gpu_with_a_peak_is_in_the_power_catalogue() -> None:
    assert set(PEAK_BF16_FLOP_PER_S) <= set(shipped_catalogue().gpus)


def test_on_the_gpu_that_is_named_a_training_takes_what_its_flops_take() -> None:
    """A job takes its runtime by its node's speed, so that runtimes are told times 0.8."""
    world = build_world(scenario())
    assert world.jobs.runtime_s / 0.8 == pytest.approx(HALF_OF_EIGHT_A100_S)
    assert world.jobs.runtime_s.size == 40
    assert (np.diff(world.jobs.arrival_s) >= 0).all()
    assert set(world.jobs.gpus) == {8.0}
    assert world.jobs.cpu_cores[0] == 16


def test_workers_share_the_work_and_each_asks_for_its_gpus() -> None:
    world = build_world(scenario(gpus=4, workers=4))
    assert world.jobs.runtime_s / 0.8 == pytest.approx(HALF_OF_EIGHT_A100_S / 2)
    assert (world.jobs.gpus[0], world.jobs.workers[0]) == (4.0, 4.0)


def test_trainings_draw_their_own_share_of_a_gpus_watts_or_that_of_other_jobs() -> None:
    assert set(build_world(scenario(gpu_ratio=0.9)).jobs.gpu_ratio) == {0.9}
    assert set(build_world(scenario()).jobs.gpu_ratio) == {0.6}
    other = {**TRAINING, "name": "other", "gpu_ratio": 0.4}
    beside = build_world(scenario(workload={"trainings": [TRAINING, other], "gpu_ratio": [0.7]}))
    own = np.array([name.startswith("train-") for name in beside.job_names])
    assert set(beside.jobs.gpu_ratio[own]) == {0.7}
    assert set(beside.jobs.gpu_ratio[~own]) == {0.4}


def test_a_published_model_stands_for_its_parameters() -> None:
    world = build_world(scenario(model="Llama-3.1-8B"))
    assert world.jobs.runtime_s / 0.8 == pytest.approx(HALF_OF_EIGHT_A100_S * 8.03 / 7)


def test_tokens_are_log_normal_about_their_median() -> None:
    world = build_world(scenario(jobs=4000, tokens_sigma=0.8))
    logs = np.log(world.jobs.runtime_s / 0.8 / HALF_OF_EIGHT_A100_S)
    assert np.median(logs) == pytest.approx(0.0, abs=0.05)
    assert logs.std() == pytest.approx(0.8, rel=0.05)


def test_another_kind_of_training_leaves_the_jobs_of_the_first_as_they_were() -> None:
    alone = build_world(scenario())
    other = {**TRAINING, "name": "other", "jobs": 3}
    both = build_world(scenario(workload={"trainings": [TRAINING, other]}))
    own = np.array([name.startswith("train-") for name in both.job_names])
    assert both.jobs.arrival_s[own].tolist() == alone.jobs.arrival_s.tolist()
    assert both.job_names.count("other-2") == 1


def test_trainings_come_beside_the_jobs_of_a_generator_and_its_load() -> None:
    made = {"generator": {"cpu_cores": [4]}, "load": 0.1}
    without = build_world(parse_scenario({**WHOLE, "workload": made}))
    beside = build_world(scenario(workload=made))
    assert beside.jobs.arrival_s.size == without.jobs.arrival_s.size + 40
    assert (np.diff(beside.jobs.arrival_s) >= 0).all()
    own = np.array([name.startswith("job-") for name in beside.job_names])
    assert beside.jobs.runtime_s[own].tolist() == without.jobs.runtime_s.tolist()


def test_trainings_can_be_suspended_and_have_deadlines_like_all_jobs() -> None:
    world = build_world(scenario(workload={"slack": "6h", "suspend": {"save_every": "20m"}}))
    jobs = world.jobs
    assert set(jobs.save_every_s) == {1200.0}
    assert jobs.deadline_s - jobs.arrival_s - jobs.runtime_s == pytest.approx(6 * HOUR)


def test_a_note_tells_what_a_training_takes_and_on_which_gpus() -> None:
    told = notes(build_world(scenario(workers=2)))
    assert (
        "train: 40 trainings of 7 billion parameters; the median of 1 billion tokens takes 4.2e19 "
        "FLOPs, 4h40m on 2 times 8 a100-sxm at 50 % of their peak"
    ) in told


def test_a_note_tells_where_a_nodes_speed_is_not_that_of_its_gpus() -> None:
    """By their peaks, H100 are 989.5 / 312 = 3.17 times as fast: 0.8 · 3.17 = 2.54."""
    told = notes(build_world(scenario(OLD, NEW)))
    assert (
        "train runs 1 times as fast on new (h100-sxm) as on a100-sxm, by the nodes' speed; its "
        "peak is 3.17 times as high: speed: 2.54 would match"
    ) in told
    assert "times as fast" not in notes(build_world(scenario(OLD, {**NEW, "speed": 2.54})))
    unknown = {**NEW, "gpus": {"model": "v100-sxm", "count": 8}}
    assert "no peak in BF16 is known for it" in notes(build_world(scenario(OLD, unknown)))


@pytest.mark.parametrize(
    ("content", "place", "reason"),
    [
        ({"model": "lama-3.1-8b"}, "trainings[0].model", "(close: llama-3.1-8b"),
        ({"model": True}, "trainings[0].model", "True is not a known model"),
        ({"model": 0}, "trainings[0].model", "greater than 0"),
        ({"gpu": "v100-sxm"}, "trainings[0].gpu", "no peak in BF16 is known for 'v100-sxm'"),
        (
            {"gpu": "h100-sxm"},
            "trainings[0].gpu",
            "no node has the GPU h100-sxm; there are: a",
        ),
        ({"mfu": 1.2}, "trainings[0].mfu", "less than or equal to 1"),
        ({"gpu_ratio": -0.1}, "trainings[0].gpu_ratio", "greater than or equal to 0"),
        ({"gpu_ratio": 1.1}, "trainings[0].gpu_ratio", "less than or equal to 1"),
        ({"tokens": 0}, "trainings[0].tokens", "greater than 0"),
    ],
)
def test_a_fault_of_a_training_is_reported_with_its_place(
    content: dict[str, Any], place: str, reason: str
) -> None:
    with pytest.raises(BadInput) as told:
        scenario(**content)
    lines = [line.strip() for line in str(told.value).splitlines()[1:]]
    assert any(line.startswith(f"workload.{place}: ") and reason in line for line in lines), lines


@pytest.mark.parametrize(
    ("workload", "reason"),
    [
        ({"trainings": [TRAINING, TRAINING]}, "'train' names other trainings already"),
        ({"trainings": []}, "workload: give either trace or generator, or trainings"),
        ({"load": 0.5}, "workload.load: applies to a trace or generator, and there is none"),
    ],
)
def test_what_does_not_belong_together_is_refused(workload: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadInput, match=reason):
        scenario(workload=workload)


def test_nodes_of_one_gpu_but_several_speeds_are_refused() -> None:
    with pytest.raises(BadInput, match=r"a100-sxm differ in speed \(old 0.8, b 1\)"):
        scenario(OLD, {**OLD, "name": "b", "speed": 1.0})


def test_what_takes_longer_than_a_year_is_refused() -> None:
    with pytest.raises(BadInput, match="train takes up to 3895d.*: give it more GPUs"):
        build_world(scenario(tokens=1e13))


def test_a_job_of_another_source_with_the_same_name_is_refused() -> None:
    with pytest.raises(BadInput, match="two jobs are named job-0: give the trainings another"):
        build_world(scenario(workload={"generator": {"jobs": 2}}, name="job"))
