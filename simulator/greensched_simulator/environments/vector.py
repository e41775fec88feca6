"""Many clusters stepped together in one compiled loop: Gymnasium's vectorised environment."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.error import ClosedEnvironmentError
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from greensched_core.errors import BadInput
from greensched_simulator.environments.episode_batch import EpisodeBatch
from greensched_simulator.environments.episode_parts import CANDIDATES, CAPPED, DOMAIN, JOB
from greensched_simulator.environments.preparation import HeadName
from greensched_simulator.environments.spaces import (
    AgentObservation,
    observation_space,
    observations_of,
    shape_of,
)
from greensched_simulator.policy import Policy
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.world.world import World


class GreenSchedVectorEnv(VectorEnv[AgentObservation, npt.NDArray[Any], npt.NDArray[Any]]):
    """B episodes at a time, each as in `GreenSchedEnv`, in worlds of any sizes.

    After an episode's end the next step begins another one, and ignores the action
    (AutoresetMode.NEXT_STEP). Without `copies`, observations are views that the next step
    overwrites. `threads` threads share the environments.
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(
        self,
        worlds: Sequence[World],
        policy: Policy | str,
        head: HeadName = "where",
        *,
        num_envs: int,
        threads: int = 1,
        copies: bool = True,
    ) -> None:
        """Raise BadInput for policies and worlds that cannot be stepped through."""
        self.num_envs, self._copies = num_envs, copies
        self._head: HeadName = head
        self._batch = EpisodeBatch(worlds, policy, (head,), num_envs, threads)
        candidates, features = shape_of(self._batch, head)
        self.single_observation_space = observation_space(candidates, features)
        self.single_action_space = spaces.Discrete(candidates)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._was_over = np.zeros(num_envs, np.bool_)
        self._generators = [seeding.np_random(None)[0] for _ in range(num_envs)]

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[AgentObservation, dict[str, Any]]:
        """Begin an episode in each environment, in worlds drawn by `seed`, `seed` + 1 and so on.

        With `options["world"]` all begin in that world.
        """
        if seed is not None:
            each = (
                [seed + place for place in range(self.num_envs)] if isinstance(seed, int) else seed
            )
            self._generators = [
                current if own is None else seeding.np_random(own)[0]
                for current, own in zip(self._generators, each, strict=True)
            ]
        for place in range(self.num_envs):
            self._begin(place, options)
        self._was_over[:] = False
        return self._seen(), self._info()

    def step(
        self, actions: npt.NDArray[Any]
    ) -> tuple[
        AgentObservation, npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], dict[str, Any]
    ]:
        """Apply each agent's action, and go on to its next decision.

        Raises BadInput if `actions` are not one whole number for each environment, ResetNeeded
        before the first `reset`, and ClosedEnvironmentError after `close`.
        """
        if self.closed:
            raise ClosedEnvironmentError("this environment is closed: make another one")
        chosen = np.asarray(actions)
        if chosen.shape != (self.num_envs,) or chosen.dtype.kind not in "iu":
            raise BadInput(
                f"give {self.num_envs} whole numbers, one action for each environment, not "
                f"{chosen.dtype} of shape {chosen.shape}"
            )
        self._batch.step(np.ascontiguousarray(chosen, np.int64))
        for place in np.flatnonzero(self._was_over).tolist():
            self._begin(place)
        ends = self._batch.is_over() & ~self._was_over
        self._was_over = ends
        rewards = self._batch.given().copy()
        return self._seen(), rewards, ends.copy(), np.zeros(ends.size, np.bool_), self._info()

    def schedule(self, place: int) -> Schedule:
        """Return what has happened in one environment's episode."""
        return self._batch.schedule(place)

    def close_extras(self, **kwargs: Any) -> None:
        """Stop the threads."""
        self._batch.close()

    def _begin(self, place: int, options: dict[str, Any] | None = None) -> None:
        self._batch.open(place, options, self._generators[place])

    def _seen(self) -> AgentObservation:
        seen = observations_of(self._batch, self._head)
        if not self._copies:
            return seen
        return {name: each.copy(order="K") for name, each in seen.items()}

    def _info(self) -> dict[str, Any]:
        """Return each decision's job or node, its number of candidates, and its world."""
        batch, known = self._batch, np.ones(self.num_envs, np.bool_)
        return {
            "job": batch.asked[:, JOB].copy(), "_job": known,
            "node": batch.asked[:, CAPPED].copy(), "_node": known,
            "domain": batch.asked[:, DOMAIN].copy(), "_domain": known,
            "candidates": batch.asked[:, CANDIDATES].copy(), "_candidates": known,
            "world": batch.world_of.copy(), "_world": known,
        }  # fmt: skip
