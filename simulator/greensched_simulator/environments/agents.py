"""Several agents in one cluster with a common reward: PettingZoo's parallel environments."""

from collections.abc import Sequence
from operator import index
from typing import Any, SupportsIndex

import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from pettingzoo import ParallelEnv

from greensched_core.errors import BadInput
from greensched_policies.encoding.observation import NODE_FEATURES
from greensched_simulator.environments.episode_batch import EpisodeBatch
from greensched_simulator.environments.episode_parts import CANDIDATES, HEAD
from greensched_simulator.environments.preparation import HEAD_NAMES, HeadName, rules_for
from greensched_simulator.environments.spaces import (
    AgentObservation,
    info_of,
    observation_space,
    shape_of,
)
from greensched_simulator.policy import Policy, policy_named
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.world.world import World

AgentInfos = dict[str, dict[str, Any]]
AgentsStep = tuple[
    dict[str, AgentObservation], dict[str, float], dict[str, bool], dict[str, bool], AgentInfos
]


class _Agents(ParallelEnv[str, AgentObservation, SupportsIndex]):  # type: ignore[misc]  # it has no types
    """The common base: worlds drawn by a seed, and one reward for all agents."""

    def __init__(
        self,
        worlds: Sequence[World],
        policy: Policy | str,
        heads: Sequence[HeadName],
        agents: Sequence[str],
    ) -> None:
        self._batch = EpisodeBatch(worlds, policy, heads, count=1, threads=1)
        self._generator = seeding.np_random(None)[0]
        self.possible_agents, self.agents = list(agents), list[str]()
        self.observation_spaces: dict[str, spaces.Dict] = {}
        self.action_spaces: dict[str, spaces.Discrete] = {}

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, AgentObservation], AgentInfos]:
        """Begin an episode in a world drawn by the seed, or in that of `options["world"]`."""
        if seed is not None:
            self._generator = seeding.np_random(seed)[0]
        self._batch.open(0, options, self._generator)
        self.agents = list(self.possible_agents)
        return self._seen(), self._infos()

    def step(self, actions: dict[str, SupportsIndex]) -> AgentsStep:
        """Apply the agents' actions, and go on to the next decision."""
        self._batch.step(np.array([self._chosen(actions)]))
        present, is_over = self.agents, bool(self._batch.is_over()[0])
        reward = float(self._batch.given()[0])
        seen, infos = self._seen(), self._infos()
        self.agents = [] if is_over else present
        return (
            seen,
            dict.fromkeys(present, reward),
            dict.fromkeys(present, is_over),
            dict.fromkeys(present, False),
            infos,
        )

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Return the observation space of an agent."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Return the action space of an agent."""
        return self.action_spaces[agent]

    def schedule(self) -> Schedule:
        """Return what has happened in this episode."""
        return self._batch.schedule(0)

    def render(self) -> None:
        """Do nothing: `schedule` returns what has happened."""

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def _chosen(self, actions: dict[str, SupportsIndex]) -> int:
        raise NotImplementedError

    def _seen(self) -> dict[str, AgentObservation]:
        raise NotImplementedError

    def _infos(self) -> AgentInfos:
        return {agent: info_of(self._batch, 0) for agent in self.agents}


class HeadAgents(_Agents):
    """An agent for each head; one that does not decide sees an empty mask, and is ignored.

    The heads are "when", "where" and "how_fast", or the given ones of them.
    """

    metadata = {"name": "greensched_heads_v0", "render_modes": []}

    def __init__(
        self, worlds: Sequence[World], policy: Policy | str, heads: Sequence[HeadName] = HEAD_NAMES
    ) -> None:
        """Raise BadInput for heads, policies and worlds that cannot be stepped through."""
        if not heads or len(set(heads)) < len(heads):
            raise BadInput(f"name at least one head, and each only once: {', '.join(HEAD_NAMES)}")
        super().__init__(worlds, policy, heads, heads)
        self._heads = tuple(heads)
        for head in self._heads:
            candidates, features = shape_of(self._batch, head)
            self.observation_spaces[head] = observation_space(candidates, features)
            self.action_spaces[head] = spaces.Discrete(candidates)

    def _chosen(self, actions: dict[str, SupportsIndex]) -> int:
        asked = info_of(self._batch, 0)["head"]
        return _answer_of(asked, actions) if asked in self.possible_agents else -1

    def _seen(self) -> dict[str, AgentObservation]:
        batch = self._batch
        seen: dict[str, AgentObservation] = {}
        for head in self._heads:
            table = batch.tables[head]
            is_asked = batch.asked[0, HEAD] == HEAD_NAMES.index(head)
            seen[head] = {
                "candidates": (table[0] * np.float32(is_asked)).T,
                "context": batch.context[0] * np.float32(is_asked),
                "mask": batch.is_choice[0, : table.shape[2]] * np.int8(is_asked),
            }
        return seen


class ZoneAgents(_Agents):
    """An agent for each grid zone: each offers one of its nodes to a job that is to start.

    The policy's `where` rule takes the best offer. It replaces offers that are no node of the zone.
    A zone without room has an empty mask, and is ignored.
    """

    metadata = {"name": "greensched_zones_v0", "render_modes": []}

    def __init__(self, worlds: Sequence[World], policy: Policy | str) -> None:
        """Raise BadInput for policies and worlds that cannot be stepped through together."""
        zones = worlds[0].zones if worlds else ()
        if any(world.zones != zones for world in worlds):
            raise BadInput(
                "there is an agent for each zone: give worlds with the same zones in the same order"
            )
        super().__init__(worlds, policy, ("where",), zones)
        policy = policy_named(policy) if isinstance(policy, str) else policy
        self._rule: Any = rules_for(policy).where[0]
        most = self._batch.tables["where"].shape[2]
        for agent in zones:
            self.observation_spaces[agent] = observation_space(most, len(NODE_FEATURES))
            self.action_spaces[agent] = spaces.Discrete(most)

    def _chosen(self, actions: dict[str, SupportsIndex]) -> int:
        batch = self._batch
        count = int(batch.asked[0, CANDIDATES])
        if count == 0:
            return -1
        seen = batch.tables["where"][:, :, :count].transpose((0, 2, 1))
        cost, zone = self._rule(seen, batch.context)[0], batch.zones(0, count)
        offers = []
        for place, agent in enumerate(self.possible_agents):
            own = np.flatnonzero(zone == place)
            if own.size:
                action = _answer_of(agent, actions)
                offers.append(action if action in own else int(own[np.argmin(cost[own])]))
        return min(offers, key=lambda offer: (cost[offer], offer))

    def _seen(self) -> dict[str, AgentObservation]:
        batch = self._batch
        zone = batch.zones(0, int(batch.asked[0, CANDIDATES]))
        seen = {}
        for place, agent in enumerate(self.possible_agents):
            mask = np.zeros(batch.tables["where"].shape[2], np.int8)
            mask[: zone.size] = zone == place
            seen[agent] = {
                "candidates": batch.tables["where"][0].T.copy(),
                "context": batch.context[0].copy(),
                "mask": mask,
            }
        return seen


def _answer_of(agent: str, actions: dict[str, SupportsIndex]) -> int:
    if agent not in actions:
        raise BadInput(f"the agent {agent!r} has no action: give one for each agent")
    return index(actions[agent])
