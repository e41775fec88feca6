"""Candidate starts of a job, and the plan that they keep to."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from greensched_policies.costs.cost import CostModel, Floats, Integers
from greensched_policies.encoding.slots import FULL, SlotColumns, spread_of, with_overload
from greensched_policies.encoding.weights import Weights
from greensched_policies.kernel.plan import Plan, keep, slots_of
from greensched_policies.kernel.starts import watch_plan
from greensched_policies.library.grid_table import GridTable, grid_table, in_parts
from greensched_simulator.arrays.moving import Data
from greensched_simulator.engine.state.choices import rules_of
from greensched_simulator.engine.state.memory import StartsMemory, starts_memory
from greensched_simulator.engine.state.starts import (
    UnstartedJob,
    choose_start,
    slot_columns,
)
from greensched_simulator.engine.state.terms import RunConfig

SLOT_S = 900.0
HOUR_S = 3600.0
NO_DATA = Data(0.0, 0), np.zeros(0)
MODEL = CostModel(np.linspace(50.0, 200.0, 11), 1.0, 1.0, False)


def terms(carbon: float = 1.0, cost: float = 0.0) -> RunConfig:
    return RunConfig(0, SLOT_S, 100, Weights(cost, carbon, 0.0), MODEL)


def hourly(*zones: list[float]) -> GridTable:
    """Return a grid whose carbon changes by the hour; prices are all 1."""
    starts = np.cumsum([0, *(len(zone) for zone in zones)])
    times_s = np.concatenate([np.arange(len(zone)) * HOUR_S for zone in zones])
    carbon = np.array([value for zone in zones for value in zone])
    return grid_table(starts, times_s, carbon, np.ones(carbon.size))


def plan(*capacity: float, slots: int = 96) -> Plan:
    return Plan(np.zeros((len(capacity), slots)), np.array(capacity))


def columns(
    grid: GridTable, kept: Plan, runtime_s: float, count: int, cores: float = 1.0
) -> tuple[SlotColumns, Integers]:
    everywhere = np.full(kept.capacity.size, runtime_s)
    return slot_columns(
        grid, kept, terms(), UnstartedJob(0.0, everywhere, cores, *NO_DATA), count, memory()
    )


def memory() -> StartsMemory:
    return starts_memory(2, 96, 96)


def busiest(kept: Plan, now_s: float, runtime_s: float, count: int, cores: float) -> Floats:
    found = np.zeros(count)
    room = np.empty((2, count + int(runtime_s / SLOT_S) + 2))
    touched = slots_of(now_s, now_s + runtime_s, SLOT_S, kept.cores.shape[1])
    watch_plan(kept.cores[0], kept.capacity[0], touched, cores, room, 1.0, found)
    return found


def test_a_run_is_priced_over_its_whole_length_from_each_start() -> None:
    slots, _ = columns(hourly([100.0, 300.0, 500.0]), plan(10.0), HOUR_S, 5)
    assert slots.wait_s[0].tolist() == [0.0, 900.0, 1800.0, 2700.0, 3600.0]
    assert slots.carbon_at_start[0].tolist() == [100.0, 100.0, 100.0, 100.0, 300.0]
    assert slots.carbon_over_run[0].tolist() == [100.0, 150.0, 200.0, 250.0, 300.0]
    assert slots.price_over_run[0].tolist() == [1.0] * 5


def uncertain(carbon: list[float], seed: int) -> GridTable:
    """Return an hourly grid of two zones whose prices cross zero and whose forecasts are off."""
    dice, count = np.random.default_rng(seed), 2 * len(carbon)
    return grid_table(
        np.array([0, len(carbon), count]),
        np.tile(np.arange(len(carbon)) * HOUR_S, 2),
        np.array(carbon + carbon[::-1]),
        dice.uniform(-100.0, 300.0, count),
        factors=dice.uniform(0.5, 2.0, (2, count)),
        offsets=dice.uniform(-50.0, 50.0, (2, count)),
    )


intensity = st.floats(0.0, 900.0)
JUST_BEFORE_S = float(np.nextafter(26_100.0, 0.0))


@settings(deadline=None)
@given(
    carbon=st.lists(intensity, min_size=40, max_size=60)
    | st.lists(intensity | st.just(np.nan), min_size=2, max_size=40),
    seed=st.integers(0, 1000),
    begin_s=st.floats(0.0, 12 * HOUR_S) | st.sampled_from([-HOUR_S, 900.0, JUST_BEFORE_S]),
    runtime_s=st.floats(1.0, 12 * HOUR_S) | st.sampled_from([900.0, 1800.0, HOUR_S]),
    count=st.integers(1, 40),
)
def test_starts_are_seen_alike_where_each_is_one_part_of_a_step_on(
    carbon: list[float], seed: int, begin_s: float, runtime_s: float, count: int
) -> None:
    grid, work = (
        uncertain(carbon, seed),
        UnstartedJob(begin_s, np.full(2, runtime_s), 1.0, *NO_DATA),
    )
    step_by_step, evenly = (
        slot_columns(each, plan(9.0, 9.0), terms(), work, count, memory())
        for each in (grid, in_parts(grid, SLOT_S))
    )
    np.testing.assert_array_equal(step_by_step[0], evenly[0])
    assert step_by_step[1].tolist() == evenly[1].tolist()


def test_each_start_has_the_zone_that_is_best_then() -> None:
    _, zones = columns(hourly([100.0, 500.0], [400.0, 50.0]), plan(9.0, 9.0), 900.0, 5)
    assert zones.tolist() == [0, 0, 0, 0, 1]


def test_a_zone_that_is_full_gives_way_to_a_dirtier_one_with_room() -> None:
    kept = plan(10.0, 10.0)
    keep(kept, 0, SLOT_S, 0.0, HOUR_S, 9.0)
    slots, zones = columns(hourly([100.0, 100.0], [400.0, 400.0]), kept, 900.0, 5, cores=2.0)
    assert zones.tolist() == [1, 1, 1, 1, 0]
    assert slots.busiest_over_run[0].tolist() == [0.2] * 5


def test_a_zone_where_no_node_can_take_the_job_is_no_choice() -> None:
    kept, runtime_s = plan(4.0, 10.0), np.array([np.inf, 900.0])
    work = UnstartedJob(0.0, runtime_s, 9.0, *NO_DATA)
    slots, zones = slot_columns(hourly([1.0], [900.0]), kept, terms(), work, 3, memory())
    assert zones.tolist() == [1, 1, 1]
    assert slots.carbon_over_run[0].tolist() == [900.0] * 3


def test_a_run_is_as_long_as_it_is_expected_to_be_in_its_zone() -> None:
    runtime_s = np.array([2 * HOUR_S, HOUR_S])
    slots, zones = slot_columns(
        hourly([100.0, 500.0], [200.0, 900.0]),
        plan(9.0, 9.0),
        terms(),
        UnstartedJob(0.0, runtime_s, 1.0, *NO_DATA),
        1,
        memory(),
    )
    assert (zones[0], slots.runtime_s[0, 0], slots.carbon_over_run[0, 0]) == (1, HOUR_S, 200.0)


def test_the_planned_window_waits_until_there_is_room_and_the_lowest_one_does_not() -> None:
    grid, kept = hourly([100.0, 110.0, 120.0]), plan(10.0)
    keep(kept, 0, SLOT_S, 0.0, 2 * HOUR_S, 9.0)
    chosen = {
        name: choose_start(
            grid, kept, terms(), rules_of(name, "weighted-cost"),
            UnstartedJob(0.0, np.array([900.0]), 2.0, *NO_DATA), 2 * HOUR_S, memory(),
        ).start_s
        for name in ("lowest-window", "planned-window", "run-now")
    }  # fmt: skip
    assert chosen == {"lowest-window": 0.0, "planned-window": 2 * HOUR_S, "run-now": 0.0}


def test_a_job_without_slack_starts_now_whatever_the_grid() -> None:
    start = choose_start(
        hourly([500.0, 1.0]), plan(10.0), terms(), rules_of("lowest-window", "weighted-cost"),
        UnstartedJob(0.0, np.array([900.0]), 1.0, *NO_DATA), -5.0, memory(),
    )  # fmt: skip
    assert start == (0.0, 0, 900.0)


def test_what_is_taken_out_of_the_plan_leaves_nothing_behind() -> None:
    kept = plan(10.0)
    keep(kept, 0, SLOT_S, 100.0, 5000.0, 4.0)
    assert kept.cores[0, :7].tolist() == [4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 0.0]
    keep(kept, 0, SLOT_S, 100.0, 5000.0, -4.0)
    assert not kept.cores.any()


def test_a_run_beyond_the_plan_counts_in_the_slots_there_are() -> None:
    kept = plan(10.0, slots=4)
    keep(kept, 0, SLOT_S, 2 * SLOT_S, 1e9, 5.0)
    assert kept.cores[0].tolist() == [0.0, 0.0, 5.0, 5.0]
    assert busiest(kept, 0.0, 1e5, 3, 1.0).tolist() == [0.6] * 3


def test_overload_is_dearer_than_any_grid_and_the_least_overload_is_best() -> None:
    weighted, load = np.array([5.0, 0.1, 0.1]), np.array([FULL, FULL + 0.01, FULL + 0.2])
    found = with_overload(weighted, load, 4.9)
    assert found[0] < found[1] < found[2]


@given(
    st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(0.0, 3.0)), min_size=1, max_size=20),
)
def test_a_start_with_room_always_costs_less_than_one_without(
    starts: list[tuple[float, float]],
) -> None:
    weighted, busiest = np.array(starts).T
    found = with_overload(weighted, busiest, float(np.ptp(weighted)))
    has_room = busiest <= FULL
    assert found[has_room].max(initial=-np.inf) < found[~has_room].min(initial=np.inf)


@settings(max_examples=60)
@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=40),
    st.integers(0, 3000),
    st.integers(1, 9000),
    st.integers(1, 30),
)
def test_the_busiest_slot_of_a_run_is_found(
    cores: list[int], now_s: int, runtime_s: int, count: int
) -> None:
    kept = Plan(np.array([cores], dtype=float), np.array([10.0]))
    found = busiest(kept, float(now_s), float(runtime_s), count, 1.0)
    first = min(int(now_s // SLOT_S), len(cores) - 1)
    after = max(min(-int(-(now_s + runtime_s) // SLOT_S), len(cores)), first + 1)
    for place in range(count):
        run = [cores[min(at, len(cores) - 1)] for at in range(first + place, after + place)]
        assert found[place] == (max(run) + 1.0) / 10.0


def test_overload_in_a_batch_goes_by_each_decisions_own_costs() -> None:
    weighted, busiest = np.array([[0.0, 1.0], [0.0, 1e6]]), np.array([[FULL, 1.0], [FULL, 1.0]])
    together = with_overload(weighted, busiest, spread_of(weighted))
    alone = with_overload(weighted[:1], busiest[:1], spread_of(weighted[:1]))
    assert together[0].tolist() == alone[0].tolist()


def test_a_run_that_ends_where_nothing_is_known_counts_as_the_mean_of_the_known() -> None:
    """The last of three starts ends in the gap that begins with the second hour."""
    slots, zones = columns(hourly([100.0, np.nan], [300.0, 300.0]), plan(9.0, 9.0), 2700.0, 3)
    assert zones.tolist() == [0, 0, 0]
    assert slots.carbon_over_run[0].tolist() == [100.0, 100.0, 220.0]
    assert all(np.isfinite(column).all() for column in slots)
