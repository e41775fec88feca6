"""What is charged for jobs that never ran, by hand."""

import math
from typing import Any

import numpy as np
import pytest

from greensched_core.errors import BadInput
from greensched_policies.billing.accounting import total_bill
from greensched_policies.costs.cost import curve_table
from greensched_simulator.runs.charges import REJECTION_FACTOR, charge_of
from greensched_simulator.runs.outcome import outcome_of
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import bill_of
from greensched_simulator.testing.small_worlds import GIB, in_one_piece, make_world
from greensched_simulator.world.world import World

HOUR = 3600.0
NEVER = (math.nan, math.nan, -1)
# A core requested draws 10 W above 100 W idle; from the second hour on it is cleaner and cheaper.
LONGEST = 1.5  # times the runtime, under the deepest cap
FALLING = [(0.0, 400.0, 100.0), (HOUR, 200.0, -20.0), (2 * HOUR, 900.0, 900.0)]


def ran(*jobs: tuple[float, float, int]) -> Schedule:
    """Return the schedule of jobs, each told by its start, its end and its node."""
    start_s, end_s, node = (np.array(column) for column in zip(*jobs, strict=True))
    return in_one_piece(start_s, end_s, node)


def charged(world: World, until_s: float = 2 * HOUR) -> tuple[float, float, float]:
    """Return Wh, money and grams that are charged where no job ever ran, before the factor."""
    found = charge_of(world, ran(*[NEVER] * world.jobs.arrival_s.size), until_s)
    assert found.jobs == world.jobs.arrival_s.size
    return (
        found.energy_j / HOUR / REJECTION_FACTOR,
        found.cost / REJECTION_FACTOR,
        found.carbon_g / REJECTION_FACTOR,
    )


def test_a_job_is_charged_more_than_it_adds_to_a_node_at_its_steepest_load() -> None:
    """Nine cores of ten draw nothing, the tenth 990 W: beside nine others that is the job's."""
    jobs = [{"cpu_cores": 9.0}, {"cpu_cores": 1.0}]
    steep = [10.0] * 10 + [1000.0]
    world = make_world(jobs)._replace(
        curve_watts=curve_table([steep, steep]), utilisation_ratio=1.0
    )
    done, undone = (
        total_bill(bill_of(world, ran((0.0, HOUR, 0), second), HOUR)).energy_active_j
        for second in ((0.0, HOUR, 0), NEVER)
    )
    assert done - undone == 990.0 * HOUR
    charge = charge_of(world, ran((0.0, HOUR, 0), NEVER), HOUR)
    assert charge.energy_j == REJECTION_FACTOR * 990.0 * HOUR > done - undone


@pytest.mark.parametrize(("job", "node", "watts", "hours"), [
    pytest.param({}, {}, 10, 1, id="one-core-for-an-hour"),
    pytest.param({"cpu_cores": 4.0, "runtime_s": 2 * HOUR}, {}, 40, 2, id="four-cores-for-two"),
    pytest.param({"estimate_s": 9 * HOUR}, {}, 10, 1, id="its-runtime-not-its-estimate"),
    pytest.param({}, {"speed": 0.5}, 10, 2, id="slow"),
    pytest.param({}, {"pue": 1.5}, 15, 1, id="pue"),
    # 70 W more for the first tenth of load and nothing above, half of a request being used.
    pytest.param({"cpu_cores": 10.0}, {"curve_class": 1.0}, 350, 1, id="least-efficient-load"),
    pytest.param({"gpus": 2.0}, {"gpu_capacity": 4.0, "gpu_idle_w": 50.0, "gpu_peak_w": 300.0},
                 10 + 2 * 250 * 0.8, 1, id="gpus"),
    pytest.param({"cpu_cores": 11.0}, {}, 0, 0, id="could-not-have-run-on-any-node"),
])  # fmt: skip
def test_a_job_is_charged_the_most_that_it_could_take(
    job: dict[str, float], node: dict[str, float], watts: float, hours: float
) -> None:
    wh = watts * hours
    assert charged(make_world([job], [node], [FALLING])) == pytest.approx(
        (wh, wh * 1e-6 * 100, wh * 1e-3 * 400)
    )


def test_where_empty_nodes_sleep_a_job_is_charged_for_waking_one_for_itself() -> None:
    node = {"gpu_capacity": 2.0, "gpu_idle_w": 30.0, "gpu_peak_w": 300.0, "pue": 1.5}
    world = make_world([{}], [node], empty_nodes_sleep=True)
    assert charged(world)[0] == pytest.approx((10 + (100 + 2 * 30) * LONGEST) * 1.5)


def test_where_nodes_can_sleep_a_job_is_charged_for_waking_one_and_letting_it_idle() -> None:
    """An hour at 10 W, 80 W saved asleep for 1.5, 5 min of waking, idling until break-even."""
    node = {"sleep_w": 20.0, "wake_s": 300.0, "wake_w": 500.0, "pue": 1.5}
    wake_wh = (500 - 20) * 300 / HOUR
    break_even_h = wake_wh / 80
    assert break_even_h > 600 / HOUR
    world = make_world([{}], [node])
    assert charged(world)[0] == pytest.approx((10 + 80 * (LONGEST + break_even_h) + wake_wh) * 1.5)


def test_where_waking_takes_nothing_ten_minutes_of_idling_are_charged() -> None:
    assert charged(make_world([{}], [{"sleep_w": 20.0}]))[0] == pytest.approx(
        10 + 80 * (LONGEST + 1 / 6)
    )


@pytest.mark.parametrize(("arrival_s", "until_s", "price", "carbon"), [
    pytest.param(0.0, 2 * HOUR, 100.0, 400.0, id="the-dearest-hour-to-come"),
    pytest.param(HOUR - 1, 2 * HOUR, 100.0, 400.0, id="a-second-before-it-ends"),
    pytest.param(HOUR, 2 * HOUR, 0.0, 200.0, id="what-was-before-does-not-count"),
    pytest.param(HOUR, 2 * HOUR + 1, 900.0, 900.0, id="what-begins-within-the-window-does"),
    pytest.param(2 * HOUR, 2 * HOUR, 900.0, 900.0, id="at-the-windows-end"),
])  # fmt: skip
def test_the_greatest_value_from_arrival_to_the_windows_end_counts(
    arrival_s: float, until_s: float, price: float, carbon: float
) -> None:
    world = make_world([{"arrival_s": arrival_s}], grids=[FALLING])
    if arrival_s == until_s:  # no time is left, but there is a value at that moment
        until_s += 1e-6
    assert charged(world, until_s)[1:] == pytest.approx((10e-6 * price, 10e-3 * carbon))


def test_no_charge_is_negative_and_each_is_above_what_running_earns() -> None:
    world = make_world([{}], grids=[[(0.0, 0.0, -50.0)]])
    assert charged(world) == pytest.approx((10.0, 0.0, 0.0))
    bill = bill_of(world, ran((0.0, HOUR, 0)), 2 * HOUR)
    assert bill.cost_active.sum() < 0.0


def test_each_figure_has_its_own_dearest_node_among_those_that_can_take_the_job() -> None:
    grids = [[(0.0, 100.0, 90.0)], [(0.0, 500.0, 10.0)], [(0.0, 999.0, 999.0)]]
    nodes: list[dict[str, float]] = [
        {"zone": 0},
        {"zone": 1},
        {"zone": 0, "speed": 0.25, "memory_capacity": 2 * GIB},
        {"zone": 2, "memory_capacity": GIB},
    ]
    world = make_world([{"memory_bytes": 2 * GIB}], nodes, grids)
    assert charged(world) == pytest.approx((40.0, 40e-6 * 90, 10e-3 * 500))


def test_what_is_charged_is_separate_and_is_in_the_totals() -> None:
    world = make_world([{}, {}, {"cpu_cores": 3.0}], grids=[FALLING])
    schedule = ran((0.0, HOUR, 0), NEVER, NEVER)
    bill = bill_of(world, schedule, 2 * HOUR)
    found = outcome_of(world, schedule, bill, 2 * HOUR)
    assert (found.jobs, found.jobs_done, found.jobs_never_ran) == (3, 1, 2)
    assert found.energy_active_j == pytest.approx(10 * HOUR)
    assert found.energy_idle_j == pytest.approx(200 * HOUR)
    assert found.energy_charged_j == pytest.approx(REJECTION_FACTOR * 40 * HOUR)
    assert found.energy_j == pytest.approx((210 + REJECTION_FACTOR * 40) * HOUR)
    assert found.cost == pytest.approx(found.cost_active + found.cost_idle + found.cost_charged)
    assert found.carbon_charged_g == pytest.approx(REJECTION_FACTOR * 0.04 * 400)
    assert found.carbon_g == pytest.approx(
        found.carbon_active_g + found.carbon_idle_g + found.carbon_charged_g
    )


def test_nothing_is_charged_where_all_ran() -> None:
    world = make_world([{}], grids=[[(0.0, 1.0, 1.0), (HOUR, math.nan, math.nan)]])
    assert charge_of(world, ran((0.0, HOUR, 0)), 9 * HOUR) == (0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("step", [(HOUR, math.nan, 1.0), (HOUR, 1.0, math.nan)])
def test_a_gap_in_which_a_job_could_have_run_is_refused(step: Any) -> None:
    world = make_world([{}], grids=[[(0.0, 1.0, 1.0), step]])
    assert charged(world, HOUR)[0] == pytest.approx(10.0)
    with pytest.raises(BadInput, match="lacks carbon, price or temperature for a part of"):
        charged(world)
