"""What agents see besides what rules see: time, deadlines, the coming day, caps and plans."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greensched_core.signals.timestamps import parse_timestamp
from greensched_policies.encoding.observation import (
    CARBON_OF_DAY,
    CONTEXT_FEATURES,
    IS_PLANNED_ZONE,
    POWER_CAP,
    PRICE_OF_DAY,
    SPEED,
    WORK_FEATURES,
)
from greensched_policies.encoding.slot_observation import SLOT_FEATURES
from greensched_policies.encoding.timing import (
    TIMING_FEATURES,
    USUAL_ON_TIME_TARGET,
    USUAL_RUNTIME_ERROR,
    Timing,
    timing_columns,
)
from greensched_policies.planning.outlook import SLOT_S, coming_day, outlook_of
from greensched_simulator.environments.preparation import HEAD_NAMES, HeadName
from greensched_simulator.environments.single import GreenSchedEnv
from greensched_simulator.testing.random_worlds import random_world
from greensched_simulator.testing.small_worlds import make_world

HOUR = 3600.0
BEGIN_S = parse_timestamp("2023-06-01T00:00:00Z")
seeds = st.integers(0, 2**31)


@pytest.mark.parametrize("head", ["where", "when"])
def test_a_job_is_seen_at_its_time_and_with_its_deadline(head: HeadName) -> None:
    job = {"arrival_s": 6.5 * HOUR, "deadline_s": 10.5 * HOUR}
    env = GreenSchedEnv([make_world([job], [{}, {}])], "run-now", head)
    seen, _ = env.reset(seed=0)
    known = Timing(BEGIN_S + 6.5 * HOUR, 4 * HOUR, USUAL_RUNTIME_ERROR, USUAL_ON_TIME_TARGET)
    wanted = [float(each) for each in timing_columns(known, HOUR)]
    assert len(wanted) == len(TIMING_FEATURES)
    assert seen["context"][len(WORK_FEATURES) :] == pytest.approx(wanted, abs=1e-6)


def test_nodes_are_seen_with_their_speed_and_their_zones_coming_day() -> None:
    clean = [(0.0, 100.0, 40.0), (12 * HOUR, 300.0, -20.0)]
    env = GreenSchedEnv(
        [make_world([{}], [{}, {"speed": 2.0, "zone": 1.0}], [clean, [(0.0, 700.0, 50.0)]])],
        "run-now",
        "where",
    )
    seen = env.reset(seed=0)[0]["candidates"].T
    assert seen[SPEED].tolist() == [1.0, 2.0]
    assert seen[CARBON_OF_DAY] == pytest.approx([0.5, 1.0])
    assert seen[PRICE_OF_DAY] == pytest.approx([4.0, 1.0])  # 40 of a mean of 10
    assert seen[POWER_CAP].tolist() == [1.0, 1.0] and not seen[IS_PLANNED_ZONE].any()


def test_a_capped_node_is_seen_with_its_cap() -> None:
    world = make_world([{}, {"arrival_s": 60.0}], [{}, {}])
    env = GreenSchedEnv([world], "run-now+cap-60", "where")
    env.reset(seed=0)
    seen, *_ = env.step(0)
    assert seen["candidates"].T[POWER_CAP].tolist() == pytest.approx([0.6, 1.0])


def test_starts_are_seen_against_the_same_coming_day_as_in_the_operator() -> None:
    dice = np.random.default_rng(3)
    carbon, price = dice.uniform(50, 500, (2, 40)), dice.uniform(-50, 200, (2, 40))
    grids = [
        [(hour * HOUR, *each) for hour, each in enumerate(zip(*zone, strict=True))]
        for zone in zip(carbon, price, strict=True)
    ]
    nodes = [{}, {"zone": 1.0}]
    env = GreenSchedEnv([make_world([{"deadline_s": 5 * HOUR}], nodes, grids)], "run-now", "when")
    seen, told = env.reset(seed=0)
    of = dict(zip(SLOT_FEATURES, seen["candidates"][: told["candidates"]].T, strict=True))
    in_quarters = [np.repeat(each, 4, axis=1) for each in (carbon, price)]
    day = coming_day(outlook_of(BEGIN_S, SLOT_S, in_quarters[0], in_quarters[1]), BEGIN_S)
    for name, whole, signal in (
        ("carbon_of_day", day.carbon_g_per_kwh, carbon),
        ("price_of_day", day.price_per_mwh, price),
    ):
        now = of[name][0] * whole
        assert min(abs(now - zone[0]) for zone in signal) < 1e-3 * abs(now), name
    assert of["slack_used"] == pytest.approx(np.arange(told["candidates"]) * SLOT_S / (4 * HOUR))


@settings(max_examples=20)
@given(seed=seeds)
def test_all_that_any_head_sees_is_finite(seed: int) -> None:
    world = random_world(seed)
    for head in HEAD_NAMES:
        env = GreenSchedEnv([world], "carbon-time+weighted-cost", head)
        seen, told = env.reset(seed=0)
        for _ in range(50):
            if told["head"] == "over":
                break
            assert np.isfinite(seen["candidates"]).all() and np.isfinite(seen["context"]).all()
            seen, *_, told = env.step(0)


def time_seen_s(context: npt.NDArray[np.float32]) -> float:
    """Return the time of a decision since the begin of its world, from what is seen of the week."""
    sin, cos = (context[CONTEXT_FEATURES.index(name)] for name in ("week_sin", "week_cos"))
    week_s = 7 * 24 * HOUR
    return float((np.arctan2(sin, cos) / (2 * np.pi) * week_s - BEGIN_S) % week_s)


@pytest.mark.parametrize("head", HEAD_NAMES)
@settings(max_examples=20)
@given(seed=seeds, last_hour=st.integers(0, 6))
def test_nothing_is_seen_that_only_later_hours_will_tell(
    head: HeadName, seed: int, last_hour: int
) -> None:
    world = random_world(seed)
    grids, until_s = world.grids, (last_hour + 1) * HOUR
    is_later = grids.times_s >= until_s
    dice = np.random.default_rng(seed)
    other = world._replace(
        grids=grids._replace(
            carbon_g_per_kwh=np.where(
                is_later, dice.uniform(20, 800, is_later.size), grids.carbon_g_per_kwh
            ),
            price_per_mwh=np.where(
                is_later, dice.uniform(-50, 300, is_later.size), grids.price_per_mwh
            ),
        )
    )
    envs = [GreenSchedEnv([each], "carbon-time+weighted-cost", head) for each in (world, other)]
    (seen, told), (also_seen, also_told) = (env.reset(seed=0) for env in envs)
    while told["head"] != "over" and time_seen_s(seen["context"]) < until_s - 60.0:
        assert told == also_told
        for name in seen:
            np.testing.assert_array_equal(seen[name], also_seen[name])
        (seen, *_, told), (also_seen, *_, also_told) = (env.step(0) for env in envs)
