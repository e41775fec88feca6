import pytest

from greensched_core.power.curves import PowerCurve
from greensched_simulator.synthetic_grid import SLOT_S, GridZone, synthetic_slots
from greensched_testbed.demo.world import NODE_COUNT, ZONES, node_groups
from greensched_testbed.nodes import NodeGroup


def test_the_demo_has_sixty_nodes_in_three_zones() -> None:
    names = [(group.grid_zone, name) for group in node_groups() for name in group.names()]
    assert NODE_COUNT == len(set(names)) == 60
    assert {sum(zone == each.name for zone, _ in names) for each in ZONES} == {20}


def test_some_nodes_of_each_zone_have_boards_and_some_have_none() -> None:
    for zone in ZONES:
        groups = [group for group in node_groups() if group.grid_zone == zone.name]
        assert {group.gpus > 0 for group in groups} == {True, False}


@pytest.mark.parametrize("group", node_groups(), ids=lambda group: str(group.name_prefix))
def test_every_node_carries_a_curve_that_can_be_read(group: NodeGroup) -> None:
    (text,) = group.annotations.values()
    assert PowerCurve.parse(text).peak_w > PowerCurve.parse(text).idle_w


@pytest.mark.parametrize("zone", ZONES, ids=lambda zone: str(zone.name))
def test_the_same_seed_gives_the_same_grid(zone: GridZone) -> None:
    one = synthetic_slots(zone, seed=3, span_s=86_400.0)
    assert one == synthetic_slots(zone, seed=3, span_s=86_400.0)
    assert one != synthetic_slots(zone, seed=4, span_s=86_400.0)
    assert len(one) == 86_400 / SLOT_S
    assert all(slot.carbon_g_per_kwh > 0 for slot in one)


def test_the_solar_grid_is_cleanest_at_noon() -> None:
    slots = synthetic_slots(ZONES[0], seed=1, span_s=86_400.0, day_starts_s=0.0)
    cleanest = min(slots, key=lambda slot: slot.carbon_g_per_kwh)
    assert 9 * 3600 < cleanest.start_s < 15 * 3600
