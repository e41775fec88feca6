import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_core import labels as names
from greensched_core.power.catalogue import NodePower, PowerCatalogue
from greensched_core.power.hardware import shipped_catalogue

CURVE = "10,11,12,13,14,15,16,17,18,19,20"


def resolve(
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    cpu_cores: float = 128.0,
    gpus: int = 0,
) -> NodePower:
    return PowerCatalogue().resolve(labels or {}, annotations or {}, cpu_cores, gpus)


def test_what_is_written_wins_in_the_stated_order() -> None:
    labels = {
        names.CPU_MODEL: "AMD-EPYC-7742",
        names.INSTANCE_TYPE: "m6i.32xlarge",
        names.POWER_MODEL: "epyc-7763-1s",
    }
    annotated = resolve(labels, {names.POWER_CURVE_WATTS: CURVE})
    assert (annotated.source, annotated.curve.peak_w) == ("annotation", 20.0)
    assert annotated.hardware == "epyc-7763-1s"  # speed still comes from what it is
    assert resolve(labels).source == "label"
    del labels[names.POWER_MODEL]
    assert (resolve(labels).source, resolve(labels).hardware) == ("instance-type", "ice-lake")
    del labels[names.INSTANCE_TYPE]
    assert (resolve(labels).source, resolve(labels).hardware) == ("cpu-model", "epyc-7742-1s")
    assert resolve({}).source == "default"


@pytest.mark.parametrize(
    ("cpus", "peak_w", "speed"),
    [
        pytest.param(128.0, 268.0, 1.0, id="whole-machine"),
        pytest.param(126.4, 268.0, 1.0, id="some-cpus-reserved"),
        pytest.param(64.0, 268.0, 2.0, id="multithreading-off"),
        pytest.param(32.0, 67.0, 1.0, id="a-quarter-of-it"),
        pytest.param(256.0, 536.0, 1.0, id="twice-as-large"),
        pytest.param(0.0, 268.0, 1.0, id="no-capacity"),
    ],
)
def test_a_part_of_a_machine_draws_its_share(cpus: float, peak_w: float, speed: float) -> None:
    power = resolve({names.POWER_MODEL: "EPYC-7763-1s"}, cpu_cores=cpus)
    assert power.curve.peak_w == pytest.approx(peak_w)
    assert power.speed == pytest.approx(speed)


@pytest.mark.parametrize(
    ("text", "cpus", "hardware"),
    [
        pytest.param("AMD EPYC 7763 64-Core Processor", 128, "epyc-7763-1s", id="as-lscpu"),
        pytest.param("AMD-EPYC-7763", 256, "epyc-7763-2s", id="two-sockets-by-cpus"),
        pytest.param("EPYC9654", 192, "epyc-9654-1s", id="no-space"),
        pytest.param("Intel(R) Xeon(R) Platinum 8480+", 224, "xeon-8480-2s", id="marks"),
        pytest.param("Intel(R) Xeon(R) CPU E5-2670 0 @ 2.60GHz", 32, "xeon-e5-2670-2s", id="old"),
        pytest.param("Intel(R) Xeon(R) CPU E5-2670 v2", 32, "generic-cpu", id="other-version"),
        pytest.param("Xeon 84801", 32, "generic-cpu", id="a-longer-number"),
        pytest.param("potato", 32, "generic-cpu", id="unknown"),
    ],
)
def test_a_cpu_is_known_by_its_words(text: str, cpus: float, hardware: str) -> None:
    power = resolve({names.CPU_MODEL: text}, cpu_cores=cpus)
    assert power.hardware == hardware
    assert bool(power.faults) == (hardware == "generic-cpu")


@pytest.mark.parametrize(
    ("instance", "hardware"),
    [
        ("m5.xlarge", "skylake"),
        ("m6a.large", "epyc-3"),
        ("m7a.large", "epyc-4-core"),
        ("m7g.large", "graviton"),
        ("c7i-flex.large", "sapphire-rapids"),
        ("c4.large", "haswell"),
        ("c4-standard-8", "emerald-rapids"),
        ("n1-standard-4", "broadwell"),
        ("n2d-standard-8", "epyc-2"),
        ("t2d-standard-1", "epyc-3-core"),
        ("Standard_D4s_v3", "broadwell"),
        ("Standard_D8ads_v5", "epyc-3"),
        ("Standard_D4ps_v5", "altra"),
        ("Standard_NC24ads_A100_v4", "epyc-3"),
    ],
)
def test_an_instance_is_known_by_its_family(instance: str, hardware: str) -> None:
    power = resolve({names.INSTANCE_TYPE: instance}, cpu_cores=4)
    assert (power.hardware, power.faults) == (hardware, ())


def test_vcpus_of_an_instance_draw_by_their_number() -> None:
    power = resolve({names.INSTANCE_TYPE: "m5.xlarge"}, cpu_cores=4)
    assert power.curve.idle_w == pytest.approx(4 * 0.613)
    assert power.curve.peak_w == pytest.approx(4 * 4.104)


@pytest.mark.parametrize(
    ("product", "idle_w", "peak_w"),
    [
        ("Tesla-T4", 8.75, 70.0),
        ("NVIDIA-L4", 9.0, 72.0),
        ("NVIDIA-L40S", 43.75, 350.0),
        ("NVIDIA-A10", 18.75, 150.0),
        ("NVIDIA-A40", 37.5, 300.0),
        ("NVIDIA-A100-SXM4-80GB", 50.0, 400.0),
        ("NVIDIA-A100-PCIE-40GB", 31.25, 250.0),
        ("NVIDIA-A100-80GB-PCIe", 37.5, 300.0),
        ("NVIDIA-H100-80GB-HBM3", 87.5, 700.0),
        ("NVIDIA-H100-PCIe", 43.75, 350.0),
        ("NVIDIA-H200", 80.3, 700.0),
        ("NVIDIA-B200", 125.0, 1000.0),
        ("Tesla-V100-SXM2-16GB", 37.5, 300.0),
        ("Tesla-P100-PCIE-16GB", 31.25, 250.0),
    ],
)
def test_a_gpu_is_known_by_its_product_name(product: str, idle_w: float, peak_w: float) -> None:
    gpu = resolve({names.GPU_PRODUCT: product}, gpus=8).gpu
    assert gpu is not None
    assert (gpu.count, gpu.idle_w, gpu.peak_w) == (8, idle_w, peak_w)


def test_slices_of_a_gpu_share_its_watts() -> None:
    labels = {names.GPU_PRODUCT: "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "nvidia.com/gpu.count": "1"}
    gpu = resolve(labels, gpus=7).gpu
    assert gpu is not None
    assert gpu.peak_w * gpu.count == pytest.approx(400.0)


def test_an_instance_family_tells_its_gpu() -> None:
    gpu = resolve({names.INSTANCE_TYPE: "g4dn.xlarge"}, cpu_cores=4, gpus=1).gpu
    assert gpu is not None
    assert (gpu.model, gpu.peak_w) == ("t4", 70.0)


def test_a_node_without_gpus_has_none_whatever_its_labels_say() -> None:
    assert resolve({names.GPU_PRODUCT: "Tesla-T4"}).gpu is None


@pytest.mark.parametrize(
    ("labels", "annotations", "gpus", "words"),
    [
        pytest.param({names.POWER_MODEL: "epyc-7763"}, {}, 0, "close: epyc-7763-", id="close-name"),
        pytest.param({names.INSTANCE_TYPE: "k3s"}, {}, 0, "set the label", id="no-instance"),
        pytest.param({}, {names.POWER_CURVE_WATTS: "1,2"}, 0, "11 watts", id="short-curve"),
        pytest.param({names.GPU_PRODUCT: "Voodoo-2"}, {}, 1, "'Voodoo-2' is not", id="gpu"),
        pytest.param({}, {}, 1, "no label nvidia.com/gpu.product", id="unlabelled-gpu"),
    ],
)
def test_what_is_not_understood_says_what_to_do(
    labels: dict[str, str], annotations: dict[str, str], gpus: int, words: str
) -> None:
    power = resolve(labels, annotations, gpus=gpus)
    assert power.source == "default"
    assert words in power.faults[0]


@pytest.mark.parametrize("cpus", [-1.0, 1e308])
def test_a_number_of_cpus_that_cannot_be_is_a_fault(cpus: float) -> None:
    assert "are implausible" in resolve(cpu_cores=cpus).faults[0]


def test_an_unknown_model_still_lets_the_instance_type_speak() -> None:
    power = resolve({names.POWER_MODEL: "typo", names.INSTANCE_TYPE: "m5.large"}, cpu_cores=2)
    assert (power.hardware, len(power.faults)) == ("skylake", 1)


def test_five_thousand_nodes_resolve_in_half_a_second() -> None:
    catalogue = PowerCatalogue()
    began = time.process_time()
    for number in range(5_000):
        labels = {names.CPU_MODEL: f"AMD EPYC 7763 lot {number % 20}", names.HOSTNAME: str(number)}
        catalogue.resolve(labels, {}, 64.0 + number % 4, number % 3)
    assert time.process_time() - began < 0.5


def test_every_entry_names_its_source() -> None:
    known = shipped_catalogue()
    entries: list[Any] = [
        *known.machines.values(),
        *known.families.values(),
        *known.gpus.values(),
        known.default_cpu,
        known.default_gpu,
    ]
    assert all(entry.source for entry in entries)
    assert known.machines["epyc-7763-1s"].speed == 1.0


def test_speeds_stay_within_what_logical_cpus_differ_by() -> None:
    assert all(0.4 < machine.speed < 2.0 for machine in shipped_catalogue().machines.values())


any_text = st.text(max_size=30) | st.sampled_from(
    ["Standard_D4s_v3", "m5.large", "epyc-7763-1s", "AMD EPYC 7763", "Tesla-T4", CURVE, "."]
)
keys = st.sampled_from(
    [names.POWER_MODEL, names.INSTANCE_TYPE, names.CPU_MODEL, names.GPU_PRODUCT,
     "nvidia.com/gpu.count", names.POWER_CURVE_WATTS]
)  # fmt: skip


@given(
    st.dictionaries(keys, any_text), st.dictionaries(keys, any_text),
    st.floats(allow_nan=False), st.integers(-1, 16),
)  # fmt: skip
def test_no_label_breaks_it(
    labels: dict[str, str], annotations: dict[str, str], cpus: float, gpus: int
) -> None:
    power = resolve(labels, annotations, cpus, gpus)
    assert power.curve.idle_w <= power.curve.peak_w
    assert power.speed > 0


def test_the_page_on_power_lists_every_machine() -> None:
    page = (Path(__file__).parents[3] / "docs" / "power.md").read_text(encoding="utf-8")
    assert [name for name in shipped_catalogue().machines if f"`{name}`" not in page] == []
