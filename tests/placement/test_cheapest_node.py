"""Where pods land when a real kube-scheduler asks the extender."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from greensched_policies.costs.cost import (
    CostModel,
    NodeColumns,
    WorkloadColumns,
    ZoneColumns,
    curve_table,
    placement_cost,
)

if TYPE_CHECKING:
    from tests.placement.conftest import Scene

pytestmark = pytest.mark.controlplane

# Each tenth of load costs more than the one before, as on a machine that turns up its clock.
STEEP = (50.0, 60.0, 80.0, 110.0, 150.0, 200.0, 260.0, 330.0, 410.0, 500.0, 600.0)


async def test_pods_land_on_the_node_that_draws_the_fewest_watts(scene: Scene) -> None:
    dear, frugal, middle = await scene.offer(
        scene.machine(50, 400), scene.machine(50, 150), scene.machine(50, 250)
    )
    assert await scene.place("a", "b", "c") == [frugal] * 3


async def test_idle_watts_do_not_count_while_empty_nodes_stay_on(scene: Scene) -> None:
    hungry_but_flat, _ = await scene.offer(scene.machine(300, 350), scene.machine(20, 120))
    assert await scene.place("a", "b") == [hungry_but_flat] * 2


async def test_among_equal_machines_the_cleaner_grid_wins_and_pods_follow_it_when_it_turns(
    scene: Scene,
) -> None:
    await scene.publish("ZZ-WIND", 30.0, 50.0)
    await scene.publish("ZZ-COAL", 800.0, 50.0)
    windy, coaly = await scene.offer(
        scene.machine(50, 250, zone="ZZ-WIND"), scene.machine(50, 250, zone="ZZ-COAL")
    )
    await scene.publish("ZZ-WIND", 31.0, 50.0)
    assert await scene.place("before-a", "before-b") == [windy] * 2
    await scene.publish("ZZ-WIND", 900.0, 50.0)
    await scene.publish("ZZ-COAL", 20.0, 50.0)
    assert await scene.place("after-a", "after-b") == [coaly] * 2


async def test_where_carbon_is_alike_the_cheaper_power_wins(scene: Scene) -> None:
    dear, cheap = await scene.offer(
        scene.machine(50, 250, zone="ZZ-DEAR"), scene.machine(50, 250, zone="ZZ-CHEAP")
    )
    await scene.publish("ZZ-DEAR", 200.0, 90.0)
    await scene.publish("ZZ-CHEAP", 200.0, 30.0)
    assert await scene.place("a", "b") == [cheap] * 2


async def test_a_pod_that_the_cheapest_node_has_no_room_for_lands_on_the_next(
    scene: Scene,
) -> None:
    frugal, middle, _ = await scene.offer(
        scene.machine(50, 60, cpu_cores=1), scene.machine(50, 250), scene.machine(50, 400)
    )
    assert await scene.place("large", cpu=4) == [middle]
    assert await scene.place("small", cpu=0.5) == [frugal]


async def test_a_pod_with_a_gpu_lands_on_the_cheapest_node_that_has_one(scene: Scene) -> None:
    gpus: dict[str, Any] = {"gpus": 4, "gpu_model": "NVIDIA-A100-SXM4-40GB"}
    wasteful, thrifty, _ = await scene.offer(
        scene.machine(50, 250, extra_labels={"greensched.io/pue": "1.9"}, **gpus),
        scene.machine(50, 250, extra_labels={"greensched.io/pue": "1.1"}, **gpus),
        scene.machine(50, 60),
    )
    assert await scene.place("trains", gpus=2) == [thrifty]
    assert await scene.place("trains-too", gpus=4) == [wasteful], "two GPUs are left"


async def test_nodes_within_one_percent_share_the_pods(scene: Scene) -> None:
    one, other, dear = await scene.offer(
        scene.machine(50, 250), scene.machine(50, 251), scene.machine(50, 350)
    )
    nodes = await scene.place(*(f"pod-{index}" for index in range(16)), cpu=0.1)
    assert set(nodes) == {one, other}  # by chance all on one: once in 32,768 runs


def greedy(scales: tuple[float, ...], pods: int) -> Counter[int]:
    """Where the cost formulas put pods one by one: how many on each machine."""
    columns = np.zeros((12, 1, len(scales)))
    nodes = NodeColumns(*columns)._replace(
        cpu_capacity=np.full((1, len(scales)), 10.0),
        curve_class=np.arange(float(len(scales)))[None, :],
        speed=np.ones((1, len(scales))),
        pue=np.ones((1, len(scales))),
    )
    pod = WorkloadColumns(*(np.array([value]) for value in (2.0, 1.0, 0.0, 3600.0)))
    zones = ZoneColumns(nodes.speed, nodes.speed)
    table = curve_table([[watts * scale for watts in STEEP] for scale in scales])
    model = CostModel(table, 0.5, 0.6, False)
    before, chosen = np.zeros((1, len(scales))), []
    for _ in range(pods):
        cost = placement_cost(nodes._replace(cpu_before=before), pod, zones, model)
        best = int(cost.power_w[0].argmin())
        chosen.append(best)
        before[0, best] = cost.cpu_after[0, best]
    return Counter(chosen)


async def test_a_burst_is_spread_as_if_each_pod_knew_of_the_one_before(scene: Scene) -> None:
    scales = (1.0, 1.1, 1.2, 1.3)
    assert all(dear / cheap > 1.05 for cheap, dear in pairwise(scales)), "no two are alike"
    names = await scene.offer(
        *(scene.machine(0, 0, cpu_cores=10, curve=[w * s for w in STEEP]) for s in scales)
    )
    pods = [f"pod-{index}" for index in range(10)]
    await scene.create(*pods, cpu=2)
    found = Counter(names.index(node) for node in await scene.bound(*pods))
    assert found == greedy(scales, len(pods))
