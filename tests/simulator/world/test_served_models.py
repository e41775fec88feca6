"""Services that answer with a language model: rates and places as they were measured."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from greensched_core.errors import BadInput
from greensched_core.power.hardware import shipped_catalogue
from greensched_simulator.policy import policy_named
from greensched_simulator.runs.service_latency import latency_of
from greensched_simulator.runs.simulation import simulate
from greensched_simulator.scenario.language import ServedModel
from greensched_simulator.scenario.language_models import PARAMETERS, PEAK_BF16_FLOP_PER_S
from greensched_simulator.scenario.served_figures import CITED, read_figures
from greensched_simulator.world.scenario_loading import Scenario, parse_scenario
from greensched_simulator.world.served_models import profile_of, rates_of, speed_on
from greensched_simulator.world.world import World, build_world

FLAT = [100 + 10 * k for k in range(11)]
H100: dict[str, Any] = {
    "name": "h", "count": 2, "curve_watts": FLAT, "speed": 0.5, "cpu_cores": 64,
    "memory": "512Gi", "gpus": {"model": "h100-sxm", "count": 8}, "zone": "A",
}  # fmt: skip
B200: dict[str, Any] = {**H100, "name": "b", "count": 1, "gpus": {"model": "b200", "count": 8}}
QWEN: dict[str, Any] = {"name": "qwen3-14b", "gpu": "h100-sxm", "batch": 128}
CHAT: dict[str, Any] = {
    "name": "chat",
    "requests": {
        "generator": {
            "rate_per_s": 10.0,
            "lengths": {"prompt": {"mean": 500.0}, "generated": {"mean": 600.0, "variation": 0.5}},
        }
    },
    "model": QWEN,
    "objective": {"share": 0.99, "within": "2s", "of": "first-token"},
    "replica": {"cpu_cores": 8, "memory": "64Gi"},
}
WHOLE: dict[str, Any] = {
    "name": "told",
    "start": "2023-06-01T00:00:00Z",
    "length": "6h",
    "grids": {"A": {"carbon": {"shape": "solar"}, "price": {"constant": 90, "unit": "EUR/MWh"}}},
    "workload": {"generator": {"jobs": 5, "cpu_cores": [1]}},
}
# Two FLOPs for each of 14.8e9 parameters at 40 % of 989.5e12 FLOPs a second.
PROMPT_PER_S = 13_371.62


def scenario(*nodes: dict[str, Any], folder: Path = Path(), **service: Any) -> Scenario:
    """Return a scenario of one chat service, on H100 if no nodes are told."""
    cluster = {"nodes": list(nodes) or [H100]}
    return parse_scenario({**WHOLE, "cluster": cluster, "services": [{**CHAT, **service}]}, folder)


def notes(world: World) -> str:
    return "\n".join(world.notes)


def test_every_figure_is_of_a_known_model_and_gpu() -> None:
    for model, gpu, gpus in CITED.measured:
        assert model in PARAMETERS
        assert gpu in PEAK_BF16_FLOP_PER_S
        assert gpus >= 1


def test_a_full_batch_generates_more_the_larger_it_is_at_watts_that_a_gpu_can_draw() -> None:
    for (model, gpu, _), batches in CITED.measured.items():
        rates = [profile.generated_per_s for profile in batches.values()]
        falls = sum(after < before for before, after in zip(rates, rates[1:], strict=False))
        assert falls == (1 if (model, gpu) == ("llama-3.1-8b", "b200") else 0), "as measured"
        watts = [profile.gpu_watts for profile in batches.values()]
        assert max(watts) <= shipped_catalogue().gpus[gpu].peak_w


def test_places_share_what_a_replica_reads_and_generates() -> None:
    served = ServedModel.model_validate(QWEN)
    assert profile_of(served) == (4474, 572)
    assert rates_of(served) == pytest.approx((PROMPT_PER_S, PROMPT_PER_S / 128, 4474 / 128))
    assert speed_on(served, "b200") == pytest.approx(5787 / 4474)


def test_a_request_holds_its_place_for_its_part_and_begins_to_be_answered_sooner() -> None:
    """500 tokens of a prompt take 37 ms; with 128 places taken, reading and answering 21.9 s."""
    (found,) = build_world(scenario()).services
    first_s = 500 / PROMPT_PER_S
    read_s, generated_s = 128 * first_s, 128 * 600 / 4474
    variance = read_s**2 + (0.5 * generated_s) ** 2
    mean_s = read_s + generated_s
    assert found.times == pytest.approx((mean_s, variance / mean_s**2, first_s, 1.0))
    assert mean_s == pytest.approx(21.95, abs=0.01)
    assert found.places == 128


def test_of_a_trace_the_lengths_of_each_request_count(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(
        "arrival_s,prompt_tokens,generated_tokens\n0,1000,0\n10000,3000,0\n20000,2000,0\n"
    )
    requests = {"trace": {"file": "log.csv"}}
    (found,) = build_world(scenario(folder=tmp_path, requests=requests)).services
    assert found.times.answer_mean_s == pytest.approx(2000 / PROMPT_PER_S)
    assert found.times.mean_s == pytest.approx(128 * 2000 / PROMPT_PER_S)


def test_lengths_do_for_token_rates_given_by_hand_too() -> None:
    by_hand: dict[str, Any] = {
        "model": None,
        "tokens": {"prompt_per_s": 10_000.0, "generated_per_s": 50.0},
        "replica": {**CHAT["replica"], "places": 16},
    }
    (found,) = build_world(scenario(**by_hand)).services
    assert found.times.answer_mean_s == pytest.approx(0.05)
    assert found.times.mean_s == pytest.approx(0.05 + 12.0)


def test_a_replica_asks_for_the_gpus_of_its_model() -> None:
    world = build_world(scenario(model={**QWEN, "name": "llama-3.1-70b", "gpus": 4}))
    (found,) = world.services
    assert set(world.jobs.gpus[found.rows]) == {4.0}


def test_on_other_gpus_a_replica_is_as_fast_as_was_measured_there() -> None:
    """The nodes' own speed, of their cores, does not count; the autoscaler reckons with H100."""
    (found,) = build_world(scenario(H100, B200)).services
    assert found.speed == pytest.approx([1.0, 1.0, 5787 / 4474])
    (alone,) = build_world(scenario()).services
    assert found.wanted.tolist() == alone.wanted.tolist()
    faster = {**QWEN, "gpu": "b200"}
    (other,) = build_world(scenario(H100, B200, model=faster)).services
    assert other.speed == pytest.approx([4474 / 5787] * 2 + [1.0])
    assert other.wanted.sum() >= found.wanted.sum()


def test_without_a_model_gpus_are_as_fast_as_they_are_whatever_their_node_is() -> None:
    requests = {"generator": {"rate_per_s": 1.0}}
    told: dict[str, Any] = {"model": None, "service_time": {"mean": "100ms"}, "requests": requests}
    aim = {"within": "2s"}
    on_gpus = {**CHAT["replica"], "gpus": 1}
    (found,) = build_world(scenario(H100, B200, **told, objective=aim, replica=on_gpus)).services
    assert set(found.speed) == {1.0}
    (found,) = build_world(scenario(H100, B200, **told, objective=aim)).services
    assert set(found.speed) == {0.5}


@pytest.mark.parametrize("node", [H100, B200], ids=lambda node: str(node["gpus"]["model"]))
def test_answers_take_what_was_measured_on_the_gpu(node: dict[str, Any]) -> None:
    """Of ten requests a second few wait; half of the gamma times are below 0.94 of the mean."""
    world = build_world(scenario(node, objective={"share": 0.99, "within": "2m"}))
    schedule = simulate(world, policy_named("run-now+first-fit"))
    faster = {"h100-sxm": 1.0, "b200": 5787 / 4474}[node["gpus"]["model"]]
    assert latency_of(world, schedule).p50_s == pytest.approx(20.5 / faster, rel=0.03)


def test_gpus_without_figures_are_refused_unless_a_replica_does_not_fit_there() -> None:
    old = {**H100, "name": "old", "gpus": {"model": "a100-sxm", "count": 8}}
    reason = (
        "service chat: a replica can get a100-sxm too, and qwen3-14b was not measured on 1 "
        "a100-sxm with a batch of 128; there are figures for"
    )
    with pytest.raises(BadInput, match=reason):
        build_world(scenario(H100, old))
    (found,) = build_world(scenario(H100, {**old, "memory": "32Gi"})).services
    assert np.isnan(found.speed[2:]).all()


def test_notes_name_the_figures_and_their_source() -> None:
    told = notes(build_world(scenario()))
    assert (
        "chat: qwen3-14b on 1 h100-sxm generates 4,474 tokens/s for 128 requests at a time and "
        "drew 572 W per GPU, by ML.ENERGY's leaderboard (lm-arena-chat); it is billed 0.79 of the "
        "GPU's range of watts"
    ) in told
    assert "times as fast" not in told
    beside = notes(build_world(scenario(H100, B200)))
    assert "chat: b200 is 1.29 times as fast as h100-sxm" in beside
    assert "it draws 0.79 of its range of watts, as there, and was measured at 0.67" in beside
    assert "prompts at 13,372 tokens/s are computed, not measured" in told


def test_a_replica_draws_the_watts_that_were_measured_for_its_model() -> None:
    """572 W on an H100 from 87.5 W idle to 700 W."""
    world = build_world(scenario())
    (found,) = world.services
    assert world.jobs.gpu_ratio[found.rows] == pytest.approx((572 - 87.5) / (700 - 87.5))
    others = np.delete(world.jobs.gpu_ratio, found.rows)
    assert set(others) == {0.6}


def test_a_share_that_the_scenario_gives_counts_before_measured_watts() -> None:
    world = build_world(scenario(replica={**CHAT["replica"], "gpu_ratio": 0.3}))
    (found,) = world.services
    assert set(world.jobs.gpu_ratio[found.rows]) == {0.3}


def test_without_a_model_a_replica_draws_what_is_assumed() -> None:
    told: dict[str, Any] = {
        "model": None, "service_time": {"mean": "100ms"}, "objective": {"within": "2s"},
        "requests": {"generator": {"rate_per_s": 1.0}}, "replica": {**CHAT["replica"], "gpus": 1},
    }  # fmt: skip
    world = build_world(scenario(**told))
    assert set(world.jobs.gpu_ratio) == {0.6}


@pytest.mark.parametrize(("watts", "share"), [(40.0, 0.0), (1200.0, 1.0)])
def test_watts_beyond_the_range_of_the_gpu_count_as_its_end(
    tmp_path: Path, watts: float, share: float
) -> None:
    told_in(tmp_path, {"avg_power_watts": 2 * watts})
    model = {"name": "maker/Mixture-30B", "figures": "task.json", "gpu": "b200", "gpus": 2,
             "batch": 64}  # fmt: skip
    world = build_world(scenario(B200, folder=tmp_path, model=model))
    assert set(world.jobs.gpu_ratio[world.services[0].rows]) == {share}


@pytest.mark.parametrize(
    ("service", "reason"),
    [
        pytest.param(
            {"model": {**QWEN, "name": "qwen3-14"}},
            r"services\[0\].model: 'qwen3-14' was not measured \(close: qwen3-14b.*there are "
            "figures for llama-3.1-70b, llama-3.1-8b, qwen3-14b",
            id="name",
        ),
        pytest.param(
            {"model": {**QWEN, "batch": 100}},
            r"qwen3-14b was not measured on 1 h100-sxm with a batch of 100; there are figures for "
            "1 h100-sxm with a batch of 8, 32, 64, 128, 256; 1 b200 with a batch of 8, 32",
            id="batch",
        ),
        pytest.param({"model": {**QWEN, "gpu": "t4"}}, "no peak in BF16 is known", id="gpu"),
        pytest.param(
            {"tokens": {"prompt_per_s": 1.0, "generated_per_s": 1.0}},
            r"services\[0\]: give either service_time, tokens or model",
            id="both",
        ),
        pytest.param(
            {"replica": {**CHAT["replica"], "places": 8}},
            "replica.places: the model sets 128: remove it",
            id="places",
        ),
        pytest.param(
            {"replica": {**CHAT["replica"], "gpus": 2}},
            "replica.gpus: the model sets 1: remove it",
            id="gpus",
        ),
        pytest.param(
            {"replica": {**CHAT["replica"], "gpu_ratio": 1.2}},
            r"replica.gpu_ratio: .*less than or equal to 1",
            id="gpu-ratio",
        ),
        pytest.param(
            {
                "model": None,
                "service_time": {"mean": "100ms"},
                "objective": {"within": "2s"},
                "requests": {"generator": {"rate_per_s": 1.0}},
                "replica": {**CHAT["replica"], "gpu_ratio": 0.5},
            },
            "replica.gpu_ratio: a replica requests no GPU: give gpus, too, or remove it",
            id="gpu-ratio-without-gpus",
        ),
        pytest.param(
            {"requests": {"generator": {"rate_per_s": 1.0}}},
            "model: needs requests' tokens: give requests.trace or requests.generator.lengths",
            id="lengths",
        ),
        pytest.param(
            {"model": None, "service_time": {"mean": "1s"}, "objective": {"within": "9s"}},
            "requests.generator.lengths: have no effect without `tokens` or `model`",
            id="no-model",
        ),
    ],
)
def test_a_fault_is_reported_with_its_place(service: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadInput, match=reason):
        scenario(**service)


CONFIGURATION: dict[str, Any] = {
    "model_id": "maker/Mixture-30B", "gpu_model": "B200", "num_gpus": 2, "max_num_seqs": 64,
    "avg_batch_size": 63.5, "output_throughput_tokens_per_sec": 6400.0, "avg_power_watts": 1200.0,
    "activated_params_billions": 3.0, "nickname": "left alone",
}  # fmt: skip


def told_in(folder: Path, *changes: dict[str, Any]) -> Path:
    path = folder / "task.json"
    every = [{**CONFIGURATION, **change} for change in changes]
    path.write_text(json.dumps({"task": "mine", "configurations": every}))
    return path


def test_a_file_of_the_leaderboards_form_is_read(tmp_path: Path) -> None:
    figures = read_figures(told_in(
        tmp_path,
        {},
        {"output_throughput_tokens_per_sec": 6000.0},
        {"max_num_seqs": 128, "avg_batch_size": 100.0},
        {"gpu_model": "MI300X"},
        {"gpu_model": "H100", "num_gpus": 1, "output_throughput_tokens_per_sec": 1600.0},
    ))  # fmt: skip
    assert figures.parameters == {"maker/mixture-30b": 3e9}
    assert figures.measured == {
        ("maker/mixture-30b", "b200", 2): {64: (6400.0, 600.0)},
        ("maker/mixture-30b", "h100-sxm", 1): {64: (1600.0, 1200.0)},
    }


def test_a_service_may_go_by_a_file_of_figures(tmp_path: Path) -> None:
    told_in(tmp_path, {})
    model = {"name": "maker/Mixture-30B", "figures": "task.json", "gpu": "b200", "gpus": 2,
             "batch": 64}  # fmt: skip
    world = build_world(scenario(B200, folder=tmp_path, model=model))
    (found,) = world.services
    # Two FLOPs for each of the 3e9 parameters that a token meets, 2 · 2250e12 FLOPs a second.
    assert found.times.answer_mean_s == pytest.approx(500 / (0.4 * 4500e12 / 6e9))
    assert found.times.mean_s == pytest.approx(64 * (500 / 300_000 + 600 / 6400))
    assert "drew 600 W per GPU, by task.json" in notes(world)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param([], "is not a task of ML.ENERGY's leaderboard: configurations: ", id="empty"),
        pytest.param([{"num_gpus": "2"}], "configurations.0.num_gpus: .* valid integer", id="type"),
        pytest.param([{"gpu_model": "T4"}], "no full batch on A100, H100, H200, B200", id="gpu"),
        pytest.param([{"avg_batch_size": 9.0}], "has no full batch", id="batch"),
    ],
)
def test_a_file_that_does_not_do_is_reported_with_its_place(
    tmp_path: Path, changes: list[dict[str, Any]], reason: str
) -> None:
    told_in(tmp_path, *changes)
    with pytest.raises(BadInput, match=rf"services\[0\].model: .*{reason}"):
        scenario(folder=tmp_path, model={**QWEN, "figures": "task.json"})


@pytest.mark.parametrize("text", ["no json", "[1]", '{"configurations": NaN}'])
def test_a_file_of_another_form_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "task.json").write_text(text)
    with pytest.raises(BadInput, match="is not a task of ML.ENERGY's leaderboard"):
        read_figures(tmp_path / "task.json")
