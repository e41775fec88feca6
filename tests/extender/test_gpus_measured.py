"""Measured watts of GPUs reach the scores: by kind of GPU, and estimated where none is measured."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_core.power.hardware import Gpu
from greensched_core.signals.readings import WATTS, Reading
from greensched_core.state import Node
from greensched_core.testing import make_node
from greensched_extender.gpu_shares import measured_shares

World = Any
MakePod = Callable[..., dict[str, Any]]
GIB = 2.0**30
BIG, SMALL = ("big", 100.0, 500.0), ("small", 50.0, 450.0)  # both with a range of 400 W


def gpu_node(name: str, kind: tuple[str, float, float], count: int = 8) -> Node:
    model, idle_w, peak_w = kind
    return make_node(name, zone="DE", gpu=Gpu(model, count, idle_w, peak_w))


def measure(world: World, **watts: float) -> None:
    at = world.clock.now()
    readings = {name: Reading(value, WATTS, at, "dcgm") for name, value in watts.items()}
    world.snapshot.measure({}, {}, readings)


def occupy(world: World, node: str, gpus: float) -> None:
    """Bind a pod with GPUs, long before anything is measured."""
    world.snapshot.put_pod(f"uid-{node}", node, (0.0, 0.0, gpus), is_recent=False)


def two_kinds(world: World) -> None:
    """Nodes with free GPUs, and busy nodes of each kind that are measured."""
    kinds = {"big-busy": BIG, "big-free": BIG, "small-busy": SMALL, "small-free": SMALL}
    world.add(*(gpu_node(name, kind) for name, kind in kinds.items()))
    occupy(world, "big-busy", 8.0)
    occupy(world, "small-busy", 8.0)


def told(world: World, pod: MakePod, name: str = "p", gpus: str = "2") -> dict[str, Any]:
    world.scores("big-free", "small-free", pod=pod(name, cpu="1", gpus=gpus))
    (decision,) = world.explanations().decisions("default", name)
    return {each["node"]: each for each in decision["candidates"]}


def test_work_goes_where_gpus_of_its_kind_are_measured_to_draw_less(
    world: World, pod: MakePod
) -> None:
    two_kinds(world)
    assumed = told(world, pod, "before")
    assert assumed["big-free"]["powerWatts"] == assumed["small-free"]["powerWatts"]
    measure(world, **{"big-busy": 8 * 100 + 8 * 40.0, "small-busy": 8 * 50 + 8 * 360.0})
    found = told(world, pod, "after")
    shares = {name: each["gpuShare"] for name, each in found.items()}
    # Eight GPUs at a tenth, or nine tenths, of their range, and eight at the assumed 0.6.
    assert shares == pytest.approx({"big-free": 0.35, "small-free": 0.75}, rel=1e-6)
    assert {each["gpuShareFrom"] for each in found.values()} == {"measured"}
    assert found["big-free"]["score"] == 10 > found["small-free"]["score"]
    gain = found["small-free"]["powerWatts"] - found["big-free"]["powerWatts"]
    assert gain == pytest.approx(1.2 * 2 * 400 * (0.75 - 0.35), rel=1e-5)


def test_a_kind_that_nobody_measures_is_assumed_beside_a_measured_one(
    world: World, pod: MakePod
) -> None:
    two_kinds(world)
    measure(world, **{"big-busy": 8 * 100 + 8 * 400.0})
    found = told(world, pod)
    assert found["big-free"]["gpuShare"] == pytest.approx(0.8)
    assert (found["small-free"]["gpuShare"], found["small-free"]["gpuShareFrom"]) == (
        None,
        "assumed",
    )
    nodes = {each["name"]: each for each in world.explanations().nodes()}
    assert nodes["big-busy"]["gpuWatts"] == 4000.0
    assert (nodes["big-free"]["gpuShare"], nodes["big-free"]["gpuMeter"]) == (
        pytest.approx(0.8),
        None,
    )
    assert (nodes["small-free"]["gpuShare"], nodes["small-free"]["gpuShareFrom"]) == (
        0.6,
        "assumed",
    )


def test_measured_gpus_change_nothing_for_pods_without_gpus(world: World, pod: MakePod) -> None:
    two_kinds(world)
    before = told(world, pod, "before", gpus="0")
    measure(world, **{"big-busy": 4000.0})
    after = told(world, pod, "after", gpus="0")
    for name, each in after.items():
        assert each["powerWatts"] == before[name]["powerWatts"]
        assert (each["gpuShare"], each["gpuShareFrom"]) == (None, None)


def test_a_pod_that_has_just_come_is_not_taken_for_one_that_draws_nothing(
    world: World, pod: MakePod
) -> None:
    two_kinds(world)
    world.snapshot.put_pod("uid-new", "big-free", (0.0, 0.0, 8.0))
    measure(world, **{"big-busy": 8 * 500.0, "big-free": 8 * 100.0})
    assert told(world, pod)["big-free"]["gpuShare"] == pytest.approx(0.8)


def test_without_new_readings_the_shares_are_assumed_again(world: World, pod: MakePod) -> None:
    two_kinds(world)
    measure(world, **{"big-busy": 4000.0})
    world.snapshot.measure({}, {}, {})
    assert told(world, pod)["big-free"]["gpuShareFrom"] == "assumed"


def test_the_row_of_a_node_that_is_gone_keeps_no_share(world: World, pod: MakePod) -> None:
    two_kinds(world)
    measure(world, **{"big-busy": 4000.0})
    world.snapshot.drop_node("big-free")
    world.add(gpu_node("small-new", SMALL))
    report = world.snapshot.report("small-new")
    assert report is not None and report.gpu_share is None


@pytest.mark.parametrize(
    ("watts", "busy", "share"),
    [
        pytest.param(0.0, 8.0, 0.3, id="below-idle-counts-as-idle"),
        pytest.param(1e5, 8.0, 0.8, id="above-the-limit-counts-as-full"),
        pytest.param(800.0, 0.0, np.nan, id="nothing-runs-so-nothing-is-known"),
        pytest.param(np.nan, 8.0, np.nan, id="not-measured"),
        pytest.param(100 * 8 + 120.0, 1.0, (0.3 + 8 * 0.6) / 9, id="one-notebook-counts-little"),
    ],
)
def test_the_share_of_one_measured_node(watts: float, busy: float, share: float) -> None:
    given_w, gpus, used, idle_w, peak_w = np.array([[watts], [8.0], [busy], [100.0], [500.0]])
    found = measured_shares(given_w, gpus, used, idle_w, peak_w, 0.6)
    assert found.tolist() == pytest.approx([share], nan_ok=True)


@given(
    st.lists(
        st.tuples(
            st.floats(0, 1e5) | st.just(np.nan),
            st.integers(0, 8),
            st.integers(0, 8),
            st.sampled_from([(0.0, 0.0), (50.0, 50.0), (50.0, 300.0), (300.0, 50.0)]),
        ),
        max_size=12,
    ),
    st.floats(0, 1),
)
def test_shares_are_between_0_and_1_and_equal_for_a_kind(
    nodes: list[tuple[float, int, int, tuple[float, float]]], assumed: float
) -> None:
    watts = np.array([each[0] for each in nodes])
    gpus = np.array([float(max(each[1], each[2])) for each in nodes])
    busy = np.array([float(each[2]) for each in nodes])
    idle_w, peak_w = (np.array([each[3][place] for each in nodes]) for place in (0, 1))
    shares = measured_shares(watts, gpus, busy, idle_w, peak_w, assumed)
    known = shares[~np.isnan(shares)]
    assert ((known >= 0.0) & (known <= 1.0 + 1e-12)).all()
    of_kind: dict[tuple[float, float], set[str]] = {}
    for (_, _, _, kind), share in zip(nodes, shares.tolist(), strict=True):
        of_kind.setdefault(kind, set()).add(str(share))
    assert all(len(found) == 1 for found in of_kind.values())
