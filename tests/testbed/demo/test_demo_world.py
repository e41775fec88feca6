import pytest

from greensched_core.power.curves import PowerCurve
from greensched_core.signals.static import load_static_zones
from greensched_simulator.formats.synthetic_grid import SYNTHETIC_SLOT_S, GridZone, synthetic_slots
from greensched_testbed.demo.world import DEMO_ZONES, NODE_COUNT, demo_node_groups
from greensched_testbed.node_generations import mixed_nodes
from greensched_testbed.nodes import EqualNodes


def test_the_demo_has_sixty_nodes_in_three_zones() -> None:
    names = [(group.grid_zone, name) for group in demo_node_groups() for name in group.names()]
    assert NODE_COUNT == len(set(names)) == 60
    assert {sum(zone == each.name for zone, _ in names) for each in DEMO_ZONES} == {20}


def test_some_nodes_of_each_zone_have_gpus_and_some_have_none() -> None:
    for zone in DEMO_ZONES:
        groups = [group for group in demo_node_groups() if group.grid_zone == zone.name]
        assert {group.gpus > 0 for group in groups} == {True, False}


@pytest.mark.parametrize("group", demo_node_groups(), ids=lambda group: str(group.name_prefix))
def test_every_node_carries_a_curve_that_can_be_read(group: EqualNodes) -> None:
    (text,) = group.annotations.values()
    assert PowerCurve.parse(text).peak_w > PowerCurve.parse(text).idle_w


@pytest.mark.parametrize("zone", DEMO_ZONES, ids=lambda zone: str(zone.name))
def test_the_same_seed_gives_the_same_grid(zone: GridZone) -> None:
    one = synthetic_slots(zone, seed=3, span_s=86_400.0)
    assert one == synthetic_slots(zone, seed=3, span_s=86_400.0)
    assert one != synthetic_slots(zone, seed=4, span_s=86_400.0)
    assert len(one) == 86_400 / SYNTHETIC_SLOT_S
    assert all(slot.carbon_g_per_kwh > 0 for slot in one)


def test_the_solar_grid_is_cleanest_at_noon() -> None:
    slots = synthetic_slots(DEMO_ZONES[0], seed=1, span_s=86_400.0, day_starts_s=0.0)
    cleanest = min(slots, key=lambda slot: slot.carbon_g_per_kwh)
    assert 9 * 3600 < cleanest.start_s < 15 * 3600


@pytest.mark.parametrize("count", [0, 1, 8, 9, 10, 25])
def test_experiments_get_as_many_mixed_nodes_as_they_ask_for(count: int) -> None:
    names = {name for group in mixed_nodes(count) for name in group.names()}
    assert len(names) == count
    assert names <= {name for group in mixed_nodes(count + 1) for name in group.names()}


def test_three_nodes_for_experiments_differ_in_zone_and_generation() -> None:
    groups = [group for group in mixed_nodes(3) if group.count]
    assert len({group.grid_zone for group in groups}) == 3
    assert len({group.gpu_model for group in groups}) == 3


def test_carbon_and_price_of_the_nodes_for_experiments_are_known_without_a_signal() -> None:
    zones = [load_static_zones().find(group.grid_zone) for group in mixed_nodes(9)]
    assert all(zone and zone.carbon_g_per_kwh and zone.price_per_mwh for zone in zones)
