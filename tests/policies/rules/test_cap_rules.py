"""What caps do to watts and speed, and which power cap each rule chooses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_policies.costs.capping import (
    EXPECTED_SENSITIVITY,
    GPU_DRAW,
    GPU_SPEED,
    POWER_CAPS,
    VOLTAGE_FLOOR,
    CapColumns,
    cpu_power,
    cpu_speed,
    frequency_within,
    gpu_speed,
    gpu_watts,
)
from greensched_policies.rules.catalogue import CAP_RULES
from greensched_simulator.reproductions.zeus import PUBLISHED

# What a node takes at each power cap if its CPUs add 100 W.
POWER_W = 100.0 * cpu_power(POWER_CAPS)
ALL = np.ones((1, POWER_CAPS.size))


def chosen(
    rule: str, *, in_time_from: float = 0.0, dirtiness: float = 1.0, awake_w: float = 0.0
) -> float:
    """Return the power cap that a rule chooses if power caps from `in_time_from` on keep all
    deadlines.
    """
    seen = CapColumns(
        POWER_CAPS[None, :], cpu_speed(POWER_CAPS, EXPECTED_SENSITIVITY)[None, :],
        POWER_W[None, :], awake_w * ALL,
        np.where(POWER_CAPS[None, :] >= in_time_from, 1.0, 0.0), dirtiness * ALL,
    )  # fmt: skip
    return float(POWER_CAPS[np.argmin(CAP_RULES[rule](seen)[0])])


def test_without_a_cap_nothing_changes() -> None:
    assert POWER_CAPS[0] == cpu_speed(POWER_CAPS, 0.3)[0] == cpu_power(POWER_CAPS)[0] == 1.0
    assert gpu_speed(1.0, 50.0, 400.0, 0.6) == 1.0
    assert gpu_watts(1.0, 50.0, 400.0, 0.6) == 0.6 * 350.0


@pytest.mark.parametrize(("sensitivity", "speed"), [
    pytest.param(0.0, 1.0, id="waits-for-memory-only"),
    pytest.param(0.5, 2 / 3, id="half-of-the-run-scales"),
    pytest.param(1.0, 0.5, id="all-of-it-scales"),
])  # fmt: skip
def test_the_speed_at_half_the_frequency(sensitivity: float, speed: float) -> None:
    assert float(cpu_speed(0.5, sensitivity)) == pytest.approx(speed)


@pytest.mark.parametrize(("power_cap", "clocked", "watts"), [
    pytest.param(0.8, 1.0, 0.8**3, id="the-cube-while-the-voltage-falls"),
    pytest.param(0.7, 1.0, 0.7**3, id="at-the-floor"),
    pytest.param(0.35, 1.0, 0.7**3 / 2, id="half-the-frequency-below-it-half-the-watts"),
    pytest.param(0.35, 0.8, 0.8 * 0.7**3 / 2 + 0.2, id="the-rest-has-its-own-clock"),
    pytest.param(0.5, 0.0, 1.0, id="nothing-follows-the-clock"),
])  # fmt: skip
def test_clocked_watts_follow_frequency_and_voltage(
    power_cap: float, clocked: float, watts: float
) -> None:
    assert float(cpu_power(power_cap, clocked)) == pytest.approx(watts)


@pytest.mark.parametrize(("power_cap", "energy"), [
    pytest.param(0.7, 0.717, id="28-percent-less-at-70-percent"),
    pytest.param(0.5, 0.782, id="22-percent-less-at-50-percent"),
])  # fmt: skip
def test_what_a_cap_saves_of_a_full_servers_energy_for_the_same_work(
    power_cap: float, energy: float
) -> None:
    """With idle watts of a quarter of the peak, as SPECpower's of recent years."""
    found = (0.25 + 0.75 * cpu_power(power_cap)) / cpu_speed(power_cap, EXPECTED_SENSITIVITY)
    assert float(found) == pytest.approx(energy, abs=0.001)


@given(st.floats(0.1, VOLTAGE_FLOOR), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_below_the_floor_work_that_scales_fully_takes_more_energy_the_slower_it_runs(
    power_cap: float, deeper: float, clocked: float
) -> None:
    slower = power_cap * (0.5 + 0.5 * deeper)
    energy = [cpu_power(each, clocked) / cpu_speed(each, 1.0) for each in (power_cap, slower)]
    assert energy[1] >= energy[0] * (1.0 - 1e-12)


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


@pytest.mark.parametrize(("limit", "frequency"), [
    pytest.param(1.2, 1.0, id="above-what-the-work-draws"),
    pytest.param(1.0, 1.0, id="just-what-it-draws"),
    pytest.param(0.6, 0.5 ** (1 / 3), id="the-voltage-falls-too"),
    pytest.param(0.2 + 0.8 * 0.343 / 2, 0.35, id="below-the-voltage-floor"),
    pytest.param(0.2, 0.0, id="all-of-it-for-watts-that-follow-no-clock"),
    pytest.param(0.1, 0.0, id="not-even-enough-for-these"),
])  # fmt: skip
def test_package_watts_allow_a_frequency(limit: float, frequency: float) -> None:
    assert float(frequency_within(limit, 0.8)) == pytest.approx(frequency, abs=1e-6)


@given(st.floats(0.05, 1.0), st.floats(0.05, 1.0))
def test_a_limit_of_what_a_frequency_draws_allows_that_frequency(
    frequency: float, clocked: float
) -> None:
    found = frequency_within(cpu_power(frequency, clocked), clocked)
    assert float(found) == pytest.approx(frequency, rel=1e-6)


@given(
    st.floats(0.5, 1.0), st.floats(10.0, 100.0), st.floats(1.5, 20.0), st.floats(0.2, 1.0),
    st.floats(0.0, 1.0),
)  # fmt: skip
def test_a_deeper_cap_never_takes_more_watts_nor_is_faster(
    power_cap: float, idle_w: float, peak_by_idle: float, ratio: float, share: float
) -> None:
    gpu, deeper = (idle_w, idle_w * peak_by_idle, ratio), power_cap - 0.05
    assert gpu_watts(deeper, *gpu) <= gpu_watts(power_cap, *gpu)
    assert 0.0 < gpu_speed(deeper, *gpu) <= gpu_speed(power_cap, *gpu) <= 1.0
    assert 0.0 < cpu_power(deeper, share) <= cpu_power(power_cap, share) <= 1.0
    assert 0.0 < cpu_speed(deeper, share) <= cpu_speed(power_cap, share) <= 1.0


@pytest.mark.parametrize(("rule", "power_cap"), [
    pytest.param("full-speed", 1.0, id="full-speed"),
    pytest.param("cap-60", 0.6, id="always-60"),
    pytest.param("cap-frugal", 0.6, id="below-the-voltage-floor-little-is-saved"),
    pytest.param("cap-when-dirty", 1.0, id="clean"),
])  # fmt: skip
def test_each_rule_chooses_its_power_cap(rule: str, power_cap: float) -> None:
    assert chosen(rule) == power_cap


def test_slow_work_keeps_a_node_awake_so_that_a_lesser_cap_is_the_frugal_one() -> None:
    """Watts with the 100 W, by speed: 184.5 at 60 %, 174.5 at 70 %, 178.2 at 80 %."""
    assert chosen("cap-frugal", awake_w=100.0) == 0.7


@pytest.mark.parametrize(("rule", "lowest"), [("cap-frugal", 0.6), ("cap-when-dirty", 0.5)])
@pytest.mark.parametrize("in_time_from", [0.5, 0.7, 1.0])
def test_deadlines_limit_the_cap(rule: str, lowest: float, in_time_from: float) -> None:
    found = chosen(rule, in_time_from=in_time_from, dirtiness=1.5)
    assert found == max(lowest, in_time_from)


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
