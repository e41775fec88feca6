"""Energy above idle by CPU time and a curve: shared out, never more than the machine draws."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_core.metering.cpu_energy import above_idle_j, joules_counter, risen
from greensched_core.metering.energy_pieces import EnergyPoint
from greensched_core.power.curves import PowerCurve

CORES = 8.0
STRAIGHT = PowerCurve(tuple(100.0 + 10.0 * step for step in range(11)))  # 100 W idle, 200 W full
BENT = PowerCurve.from_idle_and_peak(100.0, 200.0)
NODE: list[EnergyPoint] = [
    (at_s, 4.0 * at_s) for at_s in (-60.0, 0.0, 60.0, 120.0)
]  # half of it busy


@pytest.mark.parametrize(
    ("node_cpu_s", "pod_cpu_s", "joules"),
    [
        pytest.param(40.0, 20.0, 250.0, id="half-of-a-node-that-is-half-busy"),
        pytest.param(40.0, 40.0, 500.0, id="all-that-ran"),
        pytest.param(20.0, 40.0, 500.0, id="a-node-is-as-busy-as-its-pod"),
        pytest.param(40.0, 0.0, 0.0, id="it-slept"),
        pytest.param(0.0, 0.0, 0.0, id="nothing-ran"),
        pytest.param(160.0, 80.0, 500.0, id="no-node-draws-more-than-full"),
    ],
)
def test_a_pod_takes_its_share_of_what_its_node_draws_above_idle(
    node_cpu_s: float, pod_cpu_s: float, joules: float
) -> None:
    assert above_idle_j(STRAIGHT, CORES, 10.0, node_cpu_s, pod_cpu_s) == pytest.approx(joules)


@given(
    st.lists(st.floats(0.0, 50.0), min_size=1, max_size=12),
    st.floats(0.0, 50.0),
    st.floats(0.1, 100.0),
)
def test_pods_take_no_more_than_their_node_draws(
    pods_cpu_s: list[float], system_cpu_s: float, length_s: float
) -> None:
    node_cpu_s = sum(pods_cpu_s) + system_cpu_s
    taken = [above_idle_j(BENT, CORES, length_s, node_cpu_s, each) for each in pods_cpu_s]
    whole = (BENT.at(node_cpu_s / length_s / CORES) - BENT.idle_w) * length_s
    assert all(each >= 0.0 for each in taken)
    assert sum(taken) <= whole * (1 + 1e-9)
    assert sum(taken) <= (BENT.peak_w - BENT.idle_w) * length_s * (1 + 1e-9)


@given(st.floats(0.0, 10.0), st.floats(0.0, 30.0))
def test_on_a_straight_curve_others_change_nothing(pod_cpu_s: float, others_cpu_s: float) -> None:
    alone = above_idle_j(STRAIGHT, CORES, 10.0, pod_cpu_s, pod_cpu_s)
    beside = above_idle_j(STRAIGHT, CORES, 10.0, pod_cpu_s + others_cpu_s, pod_cpu_s)
    assert beside == pytest.approx(alone)


@pytest.mark.parametrize(
    ("pod", "joules"),
    [
        pytest.param([(30.0, 60.0), (60.0, 120.0)], [750.0, 1500.0], id="from-its-start"),
        pytest.param([(30.0, 60.0), (60.0, 30.0)], [750.0, 1125.0], id="set-back-it-goes-on"),
        pytest.param([(30.0, 60.0), (200.0, 400.0)], [750.0], id="a-node-that-nobody-saw"),
        pytest.param([(30.0, -1.0), (60.0, 120.0)], [1500.0], id="below-zero-is-no-point"),
        pytest.param([], [], id="no-pod"),
    ],
)
def test_a_counter_of_cpu_time_becomes_one_of_joules(
    pod: list[EnergyPoint], joules: list[float]
) -> None:
    counter = joules_counter(pod, NODE, 0.0, STRAIGHT, CORES)
    assert [value for _, value in counter] == pytest.approx(joules)


@pytest.mark.parametrize(
    ("begin_s", "until_s", "rise"),
    [
        pytest.param(0.0, 60.0, 240.0, id="between-points"),
        pytest.param(15.0, 30.0, 60.0, id="within-a-stretch"),
        pytest.param(0.0, 121.0, None, id="past-its-end"),
        pytest.param(-61.0, 0.0, None, id="before-its-start"),
    ],
)
def test_a_counter_is_read_between_its_points(
    begin_s: float, until_s: float, rise: float | None
) -> None:
    assert risen(NODE, begin_s, until_s) == (None if rise is None else pytest.approx(rise))


def test_a_node_that_was_booted_anew_is_not_known_meanwhile() -> None:
    assert risen([(0.0, 900.0), (60.0, 5.0)], 0.0, 60.0) is None
