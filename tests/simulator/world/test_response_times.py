import heapq
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_policies.costs.cost import Floats
from greensched_simulator.world.response_times import (
    Times,
    erlang_c,
    late_request_share,
    least_places,
)

EXPONENTIAL = Times(0.5, 1.0, 0.5, 1.0)  # mu = 2


def late(
    within_s: float, rate_per_s: float, places: float, times: Times, speed: float = 1.0
) -> float:
    found = late_request_share(within_s, np.array([rate_per_s]), np.array([places]), speed, times)
    return float(found[0])


@pytest.mark.parametrize(
    ("places", "load", "waits"),
    [
        pytest.param(1, 0.7, 0.7, id="one-place-is-busy-for-its-load"),
        pytest.param(2, 1.0, 1 / 3, id="two-places-half-busy"),
        pytest.param(3, 2.0, 4 / 9, id="three-places-two-thirds-busy"),
        pytest.param(10, 8.0, 0.409180, id="ten-places-of-the-tables"),
        pytest.param(4, 0.0, 0.0, id="nothing-comes"),
        pytest.param(4, 4.0, 1.0, id="as-much-as-it-can"),
        pytest.param(0, 1.0, 1.0, id="nobody-there"),
    ],
)
def test_the_chance_to_wait_is_erlangs_c(places: int, load: float, waits: float) -> None:
    found = erlang_c(np.array([float(places)]), np.array([load]))
    assert found[0] == pytest.approx(waits, abs=1e-6)


def test_the_chance_to_wait_is_known_for_thousands_of_places() -> None:
    """Halfin and Whitt, Operations Research 29(3), 1981: 1 / (1 + b·Phi(b) / phi(b))."""
    places, margin = 10_000.0, 1.0
    found = erlang_c(np.array([places]), np.array([places - margin * math.sqrt(places)]))
    below = 0.5 * (1 + math.erf(margin / math.sqrt(2)))
    density = math.exp(-(margin**2) / 2) / math.sqrt(2 * math.pi)
    assert found[0] == pytest.approx(1 / (1 + margin * below / density), abs=0.005)


@pytest.mark.parametrize("within_s", [0.1, 0.5, 2.0, 8.0])
def test_one_place_answers_as_m_m_1_does(within_s: float) -> None:
    assert late(within_s, 1.5, 1, EXPONENTIAL) == pytest.approx(math.exp(-0.5 * within_s), rel=1e-5)


@pytest.mark.parametrize(("rate", "places"), [(3.0, 2), (5.0, 4), (30.0, 20)])
@pytest.mark.parametrize("within_s", [0.2, 1.0, 3.0])
def test_several_places_answer_as_m_m_c_does(rate: float, places: int, within_s: float) -> None:
    """P(T > t) = e^-mt (1 + C (1 - e^-mt(c-1-a)) / (c-1-a)), Gross and Harris, section 2.3."""
    rate_mu, load = 2.0, rate / 2.0
    waits = float(erlang_c(np.array([float(places)]), np.array([load]))[0])
    spare = places - 1 - load
    tail = rate_mu * within_s if spare == 0 else (
        (1 - math.exp(-rate_mu * within_s * spare)) / spare
    )  # fmt: skip
    told = math.exp(-rate_mu * within_s) * (1 + waits * tail)
    assert late(within_s, rate, places, EXPONENTIAL) == pytest.approx(told, rel=1e-4)


def test_faster_nodes_are_as_if_all_times_were_shorter() -> None:
    half = Times(0.25, 1.0, 0.25, 1.0)
    assert late(0.7, 5.0, 2, EXPONENTIAL, speed=2.0) == pytest.approx(late(0.7, 5.0, 2, half))


def test_what_grows_without_end_is_all_late() -> None:
    assert late(100.0, 4.0, 2, EXPONENTIAL) == 1.0
    assert late(100.0, 1.0, 0, EXPONENTIAL, speed=0.0) == 1.0


def test_the_first_token_is_late_by_the_wait_and_its_own_time_only() -> None:
    """M/M/1 with an answer that takes next to nothing: C e^-(mu - lambda)t."""
    at_once = EXPONENTIAL._replace(answer_mean_s=1e-6, answer_variation=1.0)
    assert late(1.0, 1.5, 1, at_once) == pytest.approx(0.75 * math.exp(-0.5), rel=1e-3)


@pytest.mark.parametrize("variation", [0.25, 1.0, 2.25])
def test_a_queue_played_request_by_request_does_much_the_same(variation: float) -> None:
    dice, places, rate, mean_s = np.random.default_rng(3), 4, 6.4, 0.5
    shape = 1 / variation
    taken_s = played(dice, places, rate, lambda count: dice.gamma(shape, mean_s / shape, count))
    for within_s in (0.5, 1.0, 2.0):
        told = late(within_s, rate, places, Times(mean_s, variation, mean_s, variation))
        assert float((taken_s > within_s).mean()) == pytest.approx(told, abs=0.02)


def played(
    dice: np.random.Generator, places: int, rate: float, times: Callable[[int], Floats]
) -> Floats:
    """Return how long each of many requests took that several places answered in turn."""
    count = 60_000
    arrival_s, service_s = dice.exponential(1 / rate, count).cumsum(), times(count)
    free_s = [0.0] * places
    taken_s = np.empty(count)
    for request in range(count):
        begin_s = max(heapq.heappop(free_s), arrival_s[request])
        heapq.heappush(free_s, begin_s + service_s[request])
        taken_s[request] = begin_s + service_s[request] - arrival_s[request]
    return taken_s


@given(
    st.floats(0.01, 20.0), st.floats(0.0, 50.0), st.integers(1, 60), st.floats(0.05, 3.0),
    st.floats(0.2, 4.0),
)  # fmt: skip
def test_more_places_more_time_and_less_traffic_never_make_more_late(
    within_s: float, rate: float, places: int, variation: float, speed: float
) -> None:
    times = Times(0.5, variation, 0.5, variation)
    now = late(within_s, rate, places, times, speed)
    rounding = 1e-6
    assert 0.0 <= now <= 1.0
    assert late(within_s, rate, places + 1, times, speed) <= now + rounding
    assert late(within_s * 1.1, rate, places, times, speed) <= now + rounding
    assert late(within_s, rate * 0.9, places, times, speed) <= now + rounding


@given(st.lists(st.floats(0.0, 60.0), min_size=1, max_size=8), st.integers(1, 5))
def test_the_least_places_are_just_enough(rates: list[float], per_step: int) -> None:
    most, allowed = 12, 0.05
    found = least_places(1.5, allowed, np.array(rates), per_step, most, EXPONENTIAL)
    for rate, steps in zip(rates, found.tolist(), strict=True):
        if rate == 0.0:
            assert steps == 0.0
            continue
        enough = [
            n for n in range(1, most + 1) if late(1.5, rate, n * per_step, EXPONENTIAL) <= allowed
        ]
        assert steps == (enough[0] if enough else most)
