"""Who is asked how fast nodes run, what is seen of their power caps, and what a power cap brings
about.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greensched_core.errors import BadInput
from greensched_policies.costs.capping import (
    EXPECTED_SENSITIVITY,
    POWER_CAPS,
    CapColumns,
    cpu_power,
    cpu_speed,
    gpu_speed,
)
from greensched_policies.costs.cost import WorkloadColumns
from greensched_policies.encoding.observation import (
    GPUS,
    LOG_CPU,
    LOG_RUNTIME,
    LOG_SLACK,
    MEMORY_SHARE,
    DecisionToMake,
)
from greensched_policies.encoding.power_cap_observation import (
    POWER_CAP_FEATURES,
    CappedDomain,
)
from greensched_policies.encoding.timing import Timing
from greensched_policies.encoding.weights import Weights
from greensched_policies.library.seeing_power_caps import encode_how_fast
from greensched_simulator.environments.agents import HeadAgents
from greensched_simulator.environments.preparation import HEAD_NAMES, HeadName
from greensched_simulator.environments.single import GreenSchedEnv
from greensched_simulator.policy import policy_named
from greensched_simulator.runs.simulation import simulate
from greensched_simulator.testing.random_worlds import random_world
from greensched_simulator.testing.small_worlds import bytes_of, make_world
from greensched_simulator.world.world import World

HOUR = 3600.0
FULL, HALF = 0, 5  # places of the power caps
FEW = settings(max_examples=15)
seeds = st.integers(0, 2**31)


def asked(
    world: World, answers: list[int], policy: str = "run-now+spread"
) -> tuple[list[tuple[int, int, int]], GreenSchedEnv]:
    """Answer one question after the other; return job, node and how many power caps of each."""
    env = GreenSchedEnv([world], policy, "how_fast")
    _, told = env.reset(seed=0)
    found = []
    for answer in answers:
        assert told["head"] == "how_fast"
        found.append((told["job"], told["node"], told["candidates"]))
        *_, told = env.step(answer)
    assert told["head"] == "over"
    return found, env


def test_the_node_on_which_a_job_starts_is_asked_for_and_its_power_cap_lengthens_the_job() -> None:
    questions, env = asked(make_world([{}], [{}, {}]), [HALF])
    assert questions == [(-1, 0, POWER_CAPS.size)]
    ran = env.schedule()
    assert (ran.caps.from_s.tolist(), ran.caps.node.tolist()) == ([0.0], [0])
    assert ran.caps.cpu_frequency.tolist() == [0.5]
    assert ran.end_s[0] == pytest.approx(1.5 * HOUR)  # half of a run scales with frequency


def test_another_power_cap_midway_moves_the_end_of_what_runs_there() -> None:
    world = make_world([{}, {"arrival_s": HOUR / 2}])
    questions, env = asked(world, [HALF, FULL, FULL])
    assert [node for _, node, _ in questions] == [0, 0, 0]
    # At two thirds of its speed it did 20 minutes of work in the first half hour.
    assert env.schedule().end_s.tolist() == pytest.approx([HOUR / 2 + 2 / 3 * HOUR, 1.5 * HOUR])
    assert env.schedule().caps.cpu_frequency.tolist() == [0.5, 1.0]


def test_all_busy_nodes_are_asked_for_where_a_grid_changes() -> None:
    steps = [(0.0, 100.0, 50.0), (HOUR / 2, 300.0, 50.0), (2 * HOUR, 100.0, 50.0)]
    world = make_world([{}, {}], [{}, {}, {}], [steps])
    questions, env = asked(world, [HALF, FULL, FULL, HALF])
    assert [node for _, node, _ in questions] == [0, 1, 0, 1]
    assert env.schedule().caps.from_s.tolist() == [0.0, HOUR / 2, HOUR / 2]
    # Node 1 had done half an hour of its hour when it slowed down.
    assert env.schedule().end_s.tolist() == pytest.approx([7 / 6 * HOUR, 1.25 * HOUR])


def test_the_used_gpus_of_a_node_are_asked_for_after_its_cpus() -> None:
    """The CPUs stay at full speed; a limit of half of 400 W leaves 150 of 280 W above idle."""
    node = {"gpu_capacity": 2.0, "gpu_idle_w": 50.0, "gpu_peak_w": 400.0}
    env = GreenSchedEnv([make_world([{"gpus": 1.0}], [node])], "run-now+spread", "how_fast")
    _, told = env.reset(seed=0)
    found = [(told["node"], told["domain"])]
    _, _, _, _, told = env.step(FULL)
    found.append((told["node"], told["domain"]))
    *_, told = env.step(HALF)
    assert (found, told["head"], told["domain"]) == ([(0, 0), (0, 1)], "over", -1)
    ran = env.schedule()
    assert (ran.caps.cpu_frequency.tolist(), ran.caps.gpu_cap.tolist()) == ([1.0], [0.5])
    assert ran.end_s[0] == pytest.approx(HOUR / float(gpu_speed(0.5, 50.0, 400.0, 0.8)))


def test_who_answers_no_power_cap_gets_that_of_the_cap_rule() -> None:
    _, env = asked(make_world([{}]), [POWER_CAPS.size], "run-now+cap-60")
    assert env.schedule().caps.cpu_frequency.tolist() == [0.6]


def test_power_caps_are_seen_by_their_watts_speeds_and_deadlines() -> None:
    job = {"cpu_cores": 5.0, "memory_bytes": 2.0**30, "deadline_s": 1.3 * HOUR}
    prices = [(0.0, 200.0, 90.0), (12 * HOUR, 200.0, 30.0)]
    world = make_world([job], [{"memory_capacity": 2.0**32}], [prices])
    env = GreenSchedEnv([world], "run-now", "how_fast")
    seen, _ = env.reset(seed=0)
    power_cap = dict(zip(POWER_CAP_FEATURES, seen["candidates"].T, strict=True))
    watts, speed = cpu_power(POWER_CAPS), cpu_speed(POWER_CAPS, EXPECTED_SENSITIVITY)
    np.testing.assert_allclose(power_cap["power"], watts / watts.mean(), rtol=1e-6)
    joules = watts / speed
    np.testing.assert_allclose(power_cap["energy"], joules / joules.mean(), rtol=1e-6)
    np.testing.assert_allclose(power_cap["power_cap"], POWER_CAPS, rtol=1e-6)
    np.testing.assert_allclose(power_cap["speed"], speed, rtol=1e-6)
    # At 70 % the hour may take 1.43, if all of it scales with frequency.
    assert power_cap["keeps_deadlines"].tolist() == [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    assert power_cap["dirtiness"].tolist() == [1.0] * POWER_CAPS.size
    assert power_cap["dearness"] == pytest.approx([1.5] * POWER_CAPS.size)  # 90 of a mean of 60
    assert power_cap["spare_speed"] == pytest.approx(speed - 1.0 / 1.3)
    assert (power_cap["is_gpu"].max(), power_cap["is_measured"].max()) == (0.0, 0.0)
    context = seen["context"]
    assert context[LOG_SLACK] == pytest.approx(np.log(1.3))
    assert context[LOG_RUNTIME] == pytest.approx(np.log(2.0))
    assert context[LOG_CPU] == pytest.approx(np.log(6.0))
    assert (context[GPUS], context[MEMORY_SHARE]) == (0.0, 0.25)


def test_power_caps_are_seen_with_what_the_cluster_runs_and_what_waits() -> None:
    """Nodes have 10 cores: the third job, of 6, finds none with room."""
    world = make_world([{"cpu_cores": 6.0}] * 3, [{}, {}])
    env = GreenSchedEnv([world], "run-now", "how_fast")
    seen, _ = env.reset(seed=0)
    load = ("cluster_busy", "cluster_waiting", "planned_load")

    def told(seen: Any) -> list[float]:
        power_cap = dict(zip(POWER_CAP_FEATURES, seen["candidates"].T, strict=True))
        return [float(power_cap[name][0]) for name in load]

    before = told(seen)
    seen, *_ = env.step(FULL)
    # No rule looks ahead: without a plan the load now stands for it.
    assert [before, told(seen)] == [pytest.approx([0.6, 0.3, 0.6])] * 2


@given(seed=seeds)
def test_what_is_seen_is_finite_and_does_not_change_with_the_size_of_the_node(seed: int) -> None:
    dice = np.random.default_rng(seed)
    columns = dice.uniform(0.1, 1.0, (6, 3, POWER_CAPS.size))
    columns[2:4] *= dice.choice([0.0, 1.0, 1e4], (2, 3, 1))
    running = WorkloadColumns(*dice.uniform(0.0, 1e3, (4, 3)))
    needed_speed = dice.choice([-1.0, 0.0, 1.0, np.inf], 3)
    domain = CappedDomain(1.0, needed_speed, 0.0, 1.0, 0.5, *dice.uniform(0.0, 9.0, (2, 3)))
    timing = Timing(0.0, dice.choice([-1.0, 1e4, np.inf], 3), 0.2, 0.995)
    asked = DecisionToMake(running, Weights(1.0, 2.0, 3.0), np.full(3, 1e9), timing)
    large = columns * np.array([1.0, 1.0, 7.0, 7.0, 1.0, 1.0])[:, None, None]
    ours, theirs = (encode_how_fast(CapColumns(*each), domain, asked) for each in (columns, large))
    assert np.isfinite(ours.power_caps).all()
    assert np.isfinite(ours.context).all()
    np.testing.assert_allclose(ours.power_caps, theirs.power_caps, rtol=1e-6)


@pytest.mark.parametrize(
    "policy", ["carbon-time+weighted-cost", "run-now+spread+easy+sleep-at-once"]
)
@FEW
@given(seed=seeds)
def test_whoever_never_caps_gets_what_the_simulator_makes_of_a_policy_without_caps(
    policy: str, seed: int
) -> None:
    world = random_world(seed)
    env = GreenSchedEnv([world], policy, "how_fast")
    env.reset(seed=0)
    while not env.step(FULL)[2]:
        pass
    assert bytes_of(env.schedule()) == bytes_of(simulate(world, policy_named(policy)))


@pytest.mark.parametrize("rule", ["cap-frugal", "cap-when-dirty"])
@FEW
@given(seed=seeds)
def test_whoever_chooses_by_what_is_seen_as_a_rule_does_gets_its_schedule(
    rule: str, seed: int
) -> None:
    world = random_world(seed, "gangs")

    def choose(seen: Any) -> int:
        power_cap = dict(zip(POWER_CAP_FEATURES, seen["candidates"].T, strict=True))
        in_time = power_cap["keeps_deadlines"] == 1.0
        if not in_time.any():
            return FULL
        if rule == "cap-when-dirty":
            return int(np.flatnonzero(in_time)[-1]) if power_cap["dirtiness"][0] > 1.0 else FULL
        return int(np.argmin(np.where(in_time, power_cap["energy"], np.inf)))

    env = GreenSchedEnv([world], "carbon-time+spread", "how_fast")
    seen, _ = env.reset(seed=0)
    is_over = False
    while not is_over:
        seen, _, is_over, _, _ = env.step(choose(seen))
    ruled = simulate(world, policy_named(f"carbon-time+spread+{rule}"))
    assert bytes_of(env.schedule()) == bytes_of(ruled)


@pytest.mark.parametrize(
    "heads", [HEAD_NAMES, ("how_fast",), ("where", "how_fast"), ("where", "when")]
)
def test_each_head_that_is_named_has_an_agent_that_alone_sees_its_questions(
    heads: tuple[HeadName, ...],
) -> None:
    env = HeadAgents([random_world(4)], "carbon-time+weighted-cost", heads)
    seen, told = env.reset(seed=0)
    assert env.possible_agents == list(heads) == list(seen)
    met = set()
    while env.agents:
        head = told[env.agents[0]]["head"]
        assert [agent for agent in env.agents if seen[agent]["mask"].any()] == [head]
        met.add(head)
        seen, _, _, _, told = env.step(dict.fromkeys(env.agents, 1))
    assert met == set(heads)


@pytest.mark.parametrize("heads", [(), ("when", "when")])
def test_heads_are_named_once(heads: Any) -> None:
    with pytest.raises(BadInput, match="name at least one head"):
        HeadAgents([random_world(4)], "run-now", heads)
