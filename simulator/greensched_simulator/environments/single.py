"""One cluster in which an agent decides when or where jobs run: a Gymnasium environment."""

from collections.abc import Sequence
from operator import index
from typing import Any, SupportsIndex

import gymnasium
import numpy as np
from gymnasium import spaces

from greensched_policies.costs.cost import Floats
from greensched_simulator.environments.episode_batch import EpisodeBatch
from greensched_simulator.environments.preparation import HeadName
from greensched_simulator.environments.spaces import (
    AgentObservation,
    info_of,
    observation_space,
    observations_of,
    shape_of,
)
from greensched_simulator.policy import Policy
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.world.world import World


class GreenSchedEnv(gymnasium.Env[AgentObservation, SupportsIndex]):
    """An episode is all jobs of a world, a step is one decision, an action a candidate's index.

    `head` is what the agent decides: "where", among nodes with room for a job that is to start;
    "when", among starts for a job that has arrived and may wait; or "how_fast", among power caps
    for a node. A policy's rules decide the rest, and replace actions that name no candidate.
    Decisions with one candidate skip the agent.
    """

    metadata = {"render_modes": []}

    def __init__(
        self, worlds: Sequence[World], policy: Policy | str, head: HeadName = "where"
    ) -> None:
        """Raise BadInput for policies and worlds that cannot be stepped through."""
        self._batch = EpisodeBatch(worlds, policy, (head,), count=1, threads=1)
        self._head: HeadName = head
        self._action = np.zeros(1, np.int64)
        candidates, features = shape_of(self._batch, head)
        self.observation_space = observation_space(candidates, features)
        self.action_space = spaces.Discrete(candidates)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[AgentObservation, dict[str, Any]]:
        """Begin an episode in a world drawn by the seed, or in that of `options["world"]`."""
        super().reset(seed=seed)
        self._batch.open(0, options, self.np_random)
        return self._seen(), info_of(self._batch, 0)

    def step(
        self, action: SupportsIndex
    ) -> tuple[AgentObservation, float, bool, bool, dict[str, Any]]:
        """Apply the agent's action, and go on to its next decision, or to the episode's end.

        Raises ResetNeeded before the first `reset`.
        """
        self._action[0] = index(action)
        self._batch.step(self._action)
        is_over = bool(self._batch.is_over()[0])
        reward = float(self._batch.given()[0])
        return self._seen(), reward, is_over, False, info_of(self._batch, 0)

    def schedule(self) -> Schedule:
        """Return what has happened in this episode; a whole schedule once it is over."""
        return self._batch.schedule(0)

    def credits(self) -> Floats:
        """Return the part of the rewards that each job has brought so far, [J]."""
        return self._batch.credits(0)

    def _seen(self) -> AgentObservation:
        return {
            name: each[0].copy(order="K")
            for name, each in observations_of(self._batch, self._head).items()
        }
