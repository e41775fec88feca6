"""What agents bring about in the environments is what the simulator makes of the same decisions."""

import re
import threading
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.core.errors import NumbaExperimentalFeatureWarning
from pettingzoo.test import parallel_api_test

from greensched_core.errors import BadInput
from greensched_policies.billing.accounting import bill_placements
from greensched_policies.encoding.reward import penalty_of, reward_of, shares_of
from greensched_simulator.environments.agents import HeadAgents, ZoneAgents
from greensched_simulator.environments.preparation import HEAD_NAMES, rules_for
from greensched_simulator.environments.single import GreenSchedEnv
from greensched_simulator.environments.vector import GreenSchedVectorEnv
from greensched_simulator.policy import BASELINE, USUAL_CAP, Policy, policy_named
from greensched_simulator.runs.outcome import outcome_of
from greensched_simulator.runs.replica_use import billed_placements
from greensched_simulator.runs.run_inputs import cost_model
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import (
    bill_of,
    billed_nodes_of,
    billed_until_s,
    simulate,
    zone_series,
)
from greensched_simulator.testing.random_worlds import random_world
from greensched_simulator.testing.small_worlds import bytes_of, make_world
from greensched_simulator.world.world import World
from tests.fuzzing import IS_FUZZING

HOUR = 3600.0
ROUNDING = 1e-9  # relative
UNANSWERED = -1  # names no candidate: the policy's rule decides
FEW = settings(max_examples=8 if IS_FUZZING else 4)
seeds = st.integers(0, 2**31)
POLICIES = ("carbon-time+weighted-cost", "planned-window+topsis", "run-now+spread",
            "lowest-window+least-carbon+sleep-after-10m", "price-threshold+tetris",
            "cheapest-window+bin-pack+sleep-at-once")  # fmt: skip
# Each with what the world has beside jobs that run alone and in one piece.
CASES = (
    *((policy, "") for policy in POLICIES),
    ("carbon-time+weighted-cost", "graphs"),
    ("planned-window+topsis+sleep-after-10m", "graphs"),
    ("carbon-time+weighted-cost", "gangs"),
    ("lowest-window+spread+sleep-at-once", "gangs"),
    ("carbon-time+topsis+cap-when-dirty", ""),
    ("run-now+spread+cap-60", ""),
    ("carbon-time+weighted-cost", "panels"),
    ("planned-window+spread+pause-if-worth", "pauses"),
    ("lowest-window+weighted-cost", "failures"),
    ("planned-window+weighted-cost", "data"),
    (
        "lowest-window+tetris+sleep-at-once+cap-frugal+pause-freely",
        "data failures graphs gangs panels pauses",
    ),
    ("carbon-time+spread+easy", ""),
    ("planned-window+topsis+easy+sleep-after-10m", "data gangs"),
    ("run-now+weighted-cost+fcfs", "failures graphs"),
    ("lowest-window+tetris+cap-fifo+pause-freely", "graphs pauses"),
    ("price-threshold+spread+sjf+cap-60", "gangs"),
    ("run-now+bin-pack+f1", "panels"),
    ("carbon-time+topsis", "services"),
    ("carbon-scaler", "elastic"),
    ("planned-window+weighted-cost+scale-freely+sleep-at-once", "elastic gangs graphs pauses"),
    ("lowest-window+topsis+easy+scale-freely", "elastic failures"),
    ("carbon-time+least-carbon+unicep+scale-freely", "elastic gangs"),
    ("carbon-time+first-fit", ""),
    ("lowest-window+round-robin+wfp3", "gangs"),
    ("carbon-time+spread+sleep-at-once", "autoscaled"),
    ("planned-window+topsis+easy+cap-frugal", "autoscaled data failures gangs"),
    ("carbon-scaler", "autoscaled elastic graphs"),
)
cases = pytest.mark.parametrize(
    ("policy", "kind"), CASES, ids=[f"{policy} {kind}".strip() for policy, kind in CASES]
)


def played(env: GreenSchedEnv, choose: Callable[[Any], int], world: int = 0) -> float:
    """Play an episode to its end and return the sum of its rewards."""
    seen, _ = env.reset(seed=1, options={"world": world})
    total, is_over = 0.0, False
    while not is_over:
        seen, reward, is_over, _, _ = env.step(choose(seen))
        total += reward
    return total


def capped(policy: Policy, *, if_asked: bool) -> Policy:
    """Return a policy with a cap rule, where an agent is asked how fast nodes run.

    Where power caps may change the engine settles what has run by then, which rounds otherwise, and
    expects another minute of who overstays its estimate.
    """
    return replace(policy, cap="cap-frugal") if if_asked and policy.cap == USUAL_CAP else policy


def at_random(seed: int) -> Callable[[Any], int]:
    """Return an agent that answers anything, also what is no candidate."""
    dice = np.random.default_rng(seed)
    return lambda seen: int(dice.integers(0, seen["mask"].size))


@pytest.mark.parametrize("head", HEAD_NAMES)
@cases
@FEW
@given(seed=seeds)
def test_whoever_leaves_all_to_the_rules_gets_what_the_simulator_makes_of_them(
    policy: str, kind: str, head: Any, seed: int
) -> None:
    rules, world = (
        capped(policy_named(policy), if_asked=head == "how_fast"),
        random_world(seed, kind),
    )
    env = GreenSchedEnv([world], rules, head)
    played(env, lambda _: UNANSWERED)
    assert bytes_of(env.schedule()) == bytes_of(simulate(world, rules))


@pytest.mark.parametrize("kind", ["", "graphs pauses", "gangs"])
@FEW
@given(seed=seeds)
def test_rules_place_all_that_wait_at_once_while_an_agent_decides_when(
    kind: str, seed: int
) -> None:
    policy, world = "carbon-time+weighted-cost+concurrent", random_world(seed, kind)
    env = GreenSchedEnv([world], policy, "when")
    total = played(env, lambda _: UNANSWERED)
    assert bytes_of(env.schedule()) == bytes_of(simulate(world, policy_named(policy)))
    assert total == pytest.approx(reward_by_the_bill(world, env.schedule()), rel=1e-7, abs=1e-7)


@cases
@FEW
@given(seed=seeds)
def test_whoever_takes_what_a_rule_likes_best_of_what_is_seen_gets_its_schedule(
    policy: str, kind: str, seed: int
) -> None:
    world = random_world(seed, kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumbaExperimentalFeatureWarning)
        rule: Any = rules_for(policy_named(policy)).where[0]

    def best(seen: Any) -> int:
        count = int(seen["mask"].sum())
        candidates = seen["candidates"][None].transpose((0, 2, 1)).copy().transpose((0, 2, 1))
        return int(np.argmin(rule(candidates[:, :count], seen["context"][None])[0]))

    # Rules start several workers that had to wait for room, and round robin remembers the last
    # node: then the rule must be that of the agent.
    is_alone = not any(each in kind + policy for each in ("gangs", "elastic", "round-robin"))
    other = policy.replace(policy.split("+")[1], "weighted-cost") if is_alone else policy
    env = GreenSchedEnv([world], other)
    played(env, lambda seen: best(seen) if seen["mask"].any() else 0)
    assert bytes_of(env.schedule()) == bytes_of(simulate(world, policy_named(policy)))


@pytest.mark.parametrize("head", HEAD_NAMES)
@cases
@FEW
@given(seed=seeds)
def test_rewards_add_up_to_what_the_bill_comes_to(
    policy: str, kind: str, head: Any, seed: int
) -> None:
    world = random_world(seed, kind)
    env = GreenSchedEnv([world], policy, head)
    total = played(env, at_random(seed))
    assert total == pytest.approx(reward_by_the_bill(world, env.schedule()), rel=1e-7, abs=1e-7)


def reward_by_the_bill(world: World, ran: Schedule) -> float:
    """Return the reward of a whole schedule, reckoned from its outcome."""
    at_once = simulate(world, policy_named(BASELINE))
    least_s = billed_until_s(world, at_once)
    usual = outcome_of(world, at_once, bill_of(world, at_once, least_s), least_s)
    until_s = billed_until_s(world, at_once, ran)
    outcome = outcome_of(world, ran, bill_of(world, ran, until_s), until_s)
    deadlines = int(np.isfinite(world.jobs.deadline_s).sum())
    shares = shares_of(world.weights, usual.cost, usual.carbon_g, deadlines)
    penalty = float(penalty_of(ran.end_s, world.jobs.deadline_s).sum())
    return float(reward_of(outcome.cost, outcome.carbon_g, penalty, shares))


@pytest.mark.parametrize("kind", ["", "graphs", "gangs"])
@FEW
@given(seed=seeds)
def test_where_power_rises_evenly_each_job_is_credited_with_its_own_part(
    kind: str, seed: int
) -> None:
    world = random_world(seed, kind, curve=0.0, sleeps=False)
    env = GreenSchedEnv([world], "carbon-time+spread")
    played(env, at_random(seed))
    ran, jobs = env.schedule(), world.jobs
    at_once = simulate(world, policy_named(BASELINE))
    least_s = billed_until_s(world, at_once)
    usual = outcome_of(world, at_once, bill_of(world, at_once, least_s), least_s)
    told = ran.run_segments
    placed = billed_placements(world, ran)
    part = bill_placements(
        billed_nodes_of(world), placed, zone_series(world), (0.0, billed_until_s(world, ran)),
        cost_model(world),
    )  # fmt: skip
    deadlines = int(np.isfinite(jobs.deadline_s).sum())
    shares = shares_of(world.weights, usual.cost, usual.carbon_g, deadlines)
    penalty = penalty_of(ran.end_s, jobs.deadline_s)
    said = -shares.of_penalty * penalty
    worth = shares.of_cost * part.cost_active + shares.of_carbon_g * part.carbon_active_g
    np.subtract.at(said, told.job, worth)
    np.testing.assert_allclose(env.credits(), said, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("head", HEAD_NAMES)
@FEW
@given(seed=seeds, threads=st.integers(1, 3))
def test_vectorised_and_single_environments_agree(head: Any, seed: int, threads: int) -> None:
    policy, kind = CASES[seed % len(CASES)]
    worlds = [random_world(seed + place, kind) for place in range(3)]
    count = 20  # more than a thread takes at a time
    many = GreenSchedVectorEnv(worlds, policy, head, num_envs=count, threads=threads)
    alone = SyncVectorEnv([lambda: GreenSchedEnv(worlds, policy, head)] * count)
    dice = np.random.default_rng(seed)
    theirs, ours = alone.reset(seed=seed)[0], many.reset(seed=seed)[0]
    for _ in range(50):
        for name, values in theirs.items():
            np.testing.assert_array_equal(ours[name], values)
        actions = dice.integers(0, many.single_action_space.n, count)  # type: ignore[attr-defined]  # Discrete
        theirs, *other, _ = alone.step(actions)
        ours, *own, _ = many.step(actions)
        for mine, yours in zip(own, other, strict=True):
            np.testing.assert_array_equal(mine, yours)
    many.close()
    alone.close()


@pytest.mark.parametrize("head", HEAD_NAMES)
def test_the_same_seed_gives_the_same_episode(head: Any) -> None:
    worlds = [random_world(place) for place in range(20, 30)]

    def episode(seed: int) -> tuple[float, bytes]:
        env = GreenSchedEnv(worlds, POLICIES[0], head)
        env.reset(seed=seed)
        seen, _ = env.reset()
        total, is_over, choose = 0.0, False, at_random(seed)
        while not is_over:
            seen, reward, is_over, _, _ = env.step(choose(seen))
            total += reward
        return total, bytes_of(env.schedule())

    assert episode(3) == episode(3)
    assert len({episode(seed)[1] for seed in range(5)}) > 1


@pytest.mark.parametrize("head", HEAD_NAMES)
@cases
def test_gymnasium_finds_no_fault(policy: str, kind: str, head: Any) -> None:
    worlds = [random_world(4, kind), random_world(11, kind)]
    check_env(GreenSchedEnv(worlds, policy, head), skip_render_check=True)


@pytest.mark.parametrize("agents", [HeadAgents, ZoneAgents])
@cases
def test_pettingzoo_finds_no_fault(policy: str, kind: str, agents: Any) -> None:
    worlds = [random_world(4, kind), random_world(11, kind)]
    parallel_api_test(agents(worlds, policy), num_cycles=500)


@pytest.mark.parametrize("agents", [HeadAgents, ZoneAgents])
@cases
@FEW
@given(seed=seeds)
def test_agents_that_leave_all_to_the_rules_get_what_the_simulator_makes_of_them(
    policy: str, kind: str, agents: Any, seed: int
) -> None:
    rules, world = (
        capped(policy_named(policy), if_asked=agents is HeadAgents),
        random_world(seed, kind),
    )
    env = agents([world], rules)
    env.reset(seed=0)
    while env.agents:
        env.step(dict.fromkeys(env.agents, UNANSWERED))
    assert bytes_of(env.schedule()) == bytes_of(simulate(world, rules))


def test_a_gap_in_the_grid_is_reported() -> None:
    steps = [(0.0, 100.0, 50.0), (2 * HOUR, np.nan, 50.0)]
    jobs = [{"runtime_s": HOUR, "deadline_s": 9 * HOUR}, {"runtime_s": HOUR}]
    env = GreenSchedEnv([make_world(jobs, [{}, {}], [steps])], "run-now", "when")
    env.reset(seed=0)
    with pytest.raises(BadInput, match="lacks carbon"):
        env.step(12)


def test_a_world_without_decisions_is_over_after_one_step() -> None:
    env = GreenSchedEnv([make_world([{}, {}])], "run-now+spread")
    seen, told = env.reset(seed=0)
    assert told["head"] == "over"
    assert not seen["mask"].any()
    _, reward, is_over, _, _ = env.step(0)
    assert is_over
    assert reward == pytest.approx(-2.0)


def test_the_example_in_the_documentation_prints_what_stands_there(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (repository / "docs" / "simulator.md").read_text(encoding="utf-8")
    section = page.partition("\n## Environments\n")[2]
    example = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", section, re.DOTALL)
    assert example is not None
    monkeypatch.chdir(repository)
    exec(example[1], {})
    assert capsys.readouterr().out == example[2]


def test_all_environments_of_a_vector_begin_in_the_world_that_is_named() -> None:
    many = GreenSchedVectorEnv([random_world(seed) for seed in range(9)], POLICIES[0], num_envs=3)
    assert many.reset(seed=1, options={"world": 7})[1]["world"].tolist() == [7, 7, 7]
    assert len(set(many.reset(seed=1)[1]["world"].tolist())) > 1


def test_there_are_no_more_threads_than_there_is_work_for() -> None:
    few = GreenSchedVectorEnv([random_world(1)], POLICIES[0], "where", num_envs=2, threads=16)
    few.reset(seed=1)
    before = threading.active_count()
    for _ in range(20):
        few.step(np.zeros(2, np.int64))
    assert threading.active_count() <= before + 1
    few.close()
