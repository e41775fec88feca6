"""What environments and agents are asked in vain is told."""

from typing import Any

import numpy as np
import pytest
from gymnasium.error import ResetNeeded

from greensched_core.errors import BadInput
from greensched_simulator.environments.agents import HeadAgents, ZoneAgents
from greensched_simulator.environments.single import GreenSchedEnv
from greensched_simulator.environments.vector import GreenSchedVectorEnv
from greensched_simulator.testing.random_worlds import random_world

POLICY = "carbon-time+weighted-cost"


@pytest.mark.parametrize(
    ("policy", "head", "said"),
    [
        pytest.param("concurrent", "where", "at once: use another queue", id="all-at-once"),
        pytest.param("reject-all", "when", "rejects jobs", id="a-rule-that-rejects"),
        pytest.param("green-policy", "where", "again: use a when rule", id="a-green-policy"),
        pytest.param("node-0", "where", "nothing to choose", id="no-choice-of-nodes"),
        pytest.param("onnx:b+run-now", "where", "heads decide already: use rules", id="a-bundle"),
        pytest.param("run-now", "why", "no head", id="no-such-head"),
    ],
)
def test_what_is_not_supported_is_refused(policy: str, head: Any, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        GreenSchedEnv([random_world(1)], policy, head)


@pytest.mark.parametrize("worlds", [[], random_world(1)])
def test_an_environment_needs_a_list_of_worlds(worlds: Any) -> None:
    with pytest.raises(BadInput, match="give a list of worlds, at least one"):
        GreenSchedEnv(worlds, "run-now")


def test_an_action_is_a_whole_number() -> None:
    env: Any = GreenSchedEnv([random_world(1)], POLICY)
    env.reset(seed=1)
    for action in (1.5, "a", None):
        with pytest.raises(TypeError, match="integer"):
            env.step(action)
    env.step(np.array(1))


@pytest.mark.parametrize("agents", [HeadAgents, ZoneAgents])
def test_an_agent_without_an_action_is_reported(agents: Any) -> None:
    env = agents([random_world(4)], POLICY)
    env.reset(seed=1)
    with pytest.raises(BadInput, match="has no action"):
        env.step({})


@pytest.mark.parametrize("actions", [[0, 0], [0] * 4, [[0]] * 3, [0.0] * 3, 0])
def test_actions_that_are_not_one_for_each_environment_are_refused(actions: Any) -> None:
    many = GreenSchedVectorEnv([random_world(1)], POLICY, "where", num_envs=3)
    many.reset(seed=1)
    with pytest.raises(BadInput, match="give 3 whole numbers"):
        many.step(actions)


@pytest.mark.parametrize("actions", [0, [0]])
def test_no_step_is_taken_before_an_episode_has_begun(actions: Any) -> None:
    env: Any = GreenSchedEnv([random_world(1)], POLICY, "where")
    if isinstance(actions, list):
        env = GreenSchedVectorEnv([random_world(1)], POLICY, "where", num_envs=1)
    with pytest.raises(ResetNeeded, match="call reset"):
        env.step(actions)
    env.reset(seed=1)
    env.step(actions)


def test_a_world_that_there_is_not_is_refused() -> None:
    worlds, policy = [random_world(1)], POLICY
    envs: list[Any] = [GreenSchedEnv(worlds, policy), HeadAgents(worlds, policy)]
    for env in [*envs, GreenSchedVectorEnv(worlds, policy, num_envs=2)]:
        with pytest.raises(BadInput, match="there is no world 1"):
            env.reset(options={"world": 1})
