"""What caps do to watts and speed, and which power cap each rule chooses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_policies.costs.capping import (
    GPU_DRAW,
    GPU_SPEED,
    POWER_CAPS,
    CapColumns,
    cpu_power,
    cpu_speed,
    gpu_speed,
    gpu_watts,
)
from greensched_policies.rules.catalogue import CAP_RULES
from greensched_simulator.reproductions.zeus import PUBLISHED

# What a node takes at each power cap if its CPUs add 100 W and half of a run scales with frequency.
POWER_W = 100.0 * cpu_power(POWER_CAPS)
ALL = np.ones((1, POWER_CAPS.size))


def chosen(
    rule: str, *, in_time_from: float = 0.0, dirtiness: float = 1.0, awake_w: float = 0.0
) -> float:
    """Return the power cap that a rule chooses if power caps from `in_time_from` on keep all
    deadlines.
    """
    seen = CapColumns(
        POWER_CAPS[None, :], cpu_speed(POWER_CAPS)[None, :], POWER_W[None, :], awake_w * ALL,
        np.where(POWER_CAPS[None, :] >= in_time_from, 1.0, 0.0), dirtiness * ALL,
    )  # fmt: skip
    return float(POWER_CAPS[np.argmin(CAP_RULES[rule](seen)[0])])


def test_without_a_cap_nothing_changes() -> None:
    assert POWER_CAPS[0] == cpu_speed(POWER_CAPS)[0] == cpu_power(POWER_CAPS)[0] == 1.0
    assert gpu_speed(1.0, 50.0, 400.0, 0.6) == 1.0
    assert gpu_watts(1.0, 50.0, 400.0, 0.6) == 0.6 * 350.0


def test_half_the_frequency_takes_a_quarter_of_the_watts_and_two_thirds_of_the_speed() -> None:
    assert cpu_power(np.array([0.5])).tolist() == [0.25]
    assert cpu_speed(np.array([0.5])).tolist() == [pytest.approx(2 / 3)]


@pytest.mark.parametrize(("power_cap", "energy"), [
    pytest.param(0.7, 0.750, id="a-quarter-less-at-70-percent"),
    pytest.param(0.5, 0.656, id="a-third-less-at-50-percent"),
])  # fmt: skip
def test_what_a_cap_saves_of_a_full_servers_energy_for_the_same_work(
    power_cap: float, energy: float
) -> None:
    """With idle watts of a quarter of the peak, as SPECpower's of recent years.

    At half of the frequency a quarter of what lies above idle, for half as long again:
    (0.25 + 0.75 · 0.25) · 1.5.
    """
    found = (0.25 + 0.75 * cpu_power(power_cap)) / cpu_speed(power_cap)
    assert float(found) == pytest.approx(energy, abs=0.001)


@pytest.mark.parametrize(("power_cap", "watts", "speed"), [
    pytest.param(1.0, 300.0, 1.0, id="no-cap"),
    pytest.param(0.9, 300.0, 1.0, id="a-limit-above-what-it-draws"),
    pytest.param(0.875, 300.0, 1.0, id="just-what-it-draws"),
    pytest.param(0.5, 150.0, 0.684 + 0.155 * (200 / 350 - 0.542) / 0.1, id="between-two-measured"),
    pytest.param(0.1, 0.0, 0.571 * 50 / 350 / 0.448, id="never-below-idle"),
])  # fmt: skip
def test_a_gpus_limit_counts_only_below_what_the_work_draws(
    power_cap: float, watts: float, speed: float
) -> None:
    """It idles at 50 W and draws 350 of its 400 W."""
    given_ = (power_cap, 50.0, 400.0, 300.0 / 350.0)
    assert gpu_watts(*given_) == pytest.approx(watts)
    assert gpu_speed(*given_) == pytest.approx(speed)


def test_the_gpus_curve_is_near_each_of_those_that_were_measured() -> None:
    """Within 4 points above 60 % of the watts; below, where the three differ most, within 10."""
    for figures in (each for limits in PUBLISHED.values() for each in limits.values()):
        if len(figures) == 3:
            throughput, power, _ = figures
            points = 0.04 if power > 0.6 else 0.1
            assert np.interp(power, GPU_DRAW, GPU_SPEED) == pytest.approx(throughput, abs=points)


@given(st.floats(0.5, 1.0), st.floats(10.0, 100.0), st.floats(1.5, 20.0), st.floats(0.2, 1.0))
def test_a_deeper_cap_never_takes_more_watts_nor_more_energy_nor_is_faster(
    power_cap: float, idle_w: float, peak_by_idle: float, ratio: float
) -> None:
    gpu = (idle_w, idle_w * peak_by_idle, ratio)
    for deeper in (power_cap, power_cap - 0.05):
        assert gpu_watts(deeper, *gpu) <= gpu_watts(power_cap, *gpu)
        assert gpu_speed(deeper, *gpu) <= gpu_speed(power_cap, *gpu) <= 1.0
        assert gpu_speed(deeper, *gpu) > 0.0
    assert cpu_power(power_cap) / cpu_speed(power_cap) <= 1.0


@pytest.mark.parametrize(("rule", "power_cap"), [
    pytest.param("full-speed", 1.0, id="full-speed"),
    pytest.param("cap-60", 0.6, id="always-60"),
    pytest.param("cap-frugal", 0.5, id="the-deepest-takes-the-least"),
    pytest.param("cap-when-dirty", 1.0, id="clean"),
])  # fmt: skip
def test_each_rule_chooses_its_power_cap(rule: str, power_cap: float) -> None:
    assert chosen(rule) == power_cap


def test_slow_work_keeps_a_node_awake_so_that_the_deepest_cap_is_not_the_frugal_one() -> None:
    """(100 power cap² + 100 W) / speed: 187.5 W at half, 181.3 at 60 %, 180.9 at 70 %, 184.5 at
    80.
    """
    assert chosen("cap-frugal", awake_w=100.0) == 0.7


@pytest.mark.parametrize("rule", ["cap-frugal", "cap-when-dirty"])
@pytest.mark.parametrize("in_time_from", [0.5, 0.7, 1.0])
def test_deadlines_limit_the_cap(rule: str, in_time_from: float) -> None:
    assert chosen(rule, in_time_from=in_time_from, dirtiness=1.5) == in_time_from


@pytest.mark.parametrize("rule", ["cap-frugal", "cap-when-dirty"])
def test_what_is_late_anyway_is_not_capped(rule: str) -> None:
    assert chosen(rule, in_time_from=2.0, dirtiness=1.5) == 1.0


@pytest.mark.parametrize(("dirtiness", "power_cap"), [
    pytest.param(0.8, 1.0, id="cleaner-than-the-day"),
    pytest.param(1.0, 1.0, id="as-the-day"),
    pytest.param(1.01, 0.5, id="dirtier"),
])  # fmt: skip
def test_dirty_hours_are_slow_ones(dirtiness: float, power_cap: float) -> None:
    assert chosen("cap-when-dirty", dirtiness=dirtiness) == power_cap


def test_a_steady_grid_whose_mean_is_off_by_the_last_digit_is_not_dirty() -> None:
    assert chosen("cap-when-dirty", dirtiness=np.nextafter(1.0, 2.0)) == 1.0
    assert chosen("cap-when-dirty", dirtiness=1.001) == POWER_CAPS[-1]
