"""Many episodes, stepped together; their observations are in shared arrays."""

import logging
import math
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.error import ResetNeeded
from numba.core.errors import NumbaExperimentalFeatureWarning

from greensched_core.errors import BadInput
from greensched_policies.costs.capping import POWER_CAPS
from greensched_policies.costs.cost import Floats, Integers
from greensched_policies.encoding.observation import CONTEXT_FEATURES, NODE_FEATURES
from greensched_policies.encoding.power_cap_observation import POWER_CAP_FEATURES
from greensched_policies.encoding.slot_observation import SLOT_FEATURES
from greensched_policies.kernel.seeing_nodes import Singles
from greensched_simulator.engine.queue.deciding import OVER
from greensched_simulator.environments.episode_parts import (
    GIVEN,
    HEAD,
    IN_ALL,
    PENDING,
    Shown,
    book_of,
    episodes_of,
    history_of,
    put_episode,
    shared_of,
)
from greensched_simulator.environments.episodes import go_on
from greensched_simulator.environments.preparation import (
    HeadName,
    Prepared,
    new_parts,
    prepared,
    reward_of_bill,
    rules_for,
    schedule_in,
)
from greensched_simulator.environments.worker_pool import WorkerPool, idle_counters
from greensched_simulator.policy import Policy, policy_named
from greensched_simulator.runs.machine_code import is_cached
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.world.world import World

_log = logging.getLogger(__name__)
_MOST_AT_A_TIME = 8  # episodes that a thread takes from the others


class EpisodeBatch:
    """B episodes, each in one of some worlds, with their pending decisions and rewards.

    Each step overwrites the arrays: copy what must be kept.
    """

    def __init__(
        self,
        worlds: Sequence[World],
        policy: Policy | str,
        heads: Sequence[HeadName],
        count: int,
        threads: int,
    ) -> None:
        if isinstance(worlds, World) or not worlds or count < 1 or threads < 1:
            raise BadInput("give a list of worlds, at least one, one environment and one thread")
        policy = policy_named(policy) if isinstance(policy, str) else policy
        if not is_cached(go_on):
            _log.warning("compiling the environments and the engine; once, for 1 to 2 minutes")
        self.worlds = [prepared(world, policy, tuple(heads)) for world in worlds]
        self.tables = _tables_for(self.worlds, heads, count)
        most = max(table.shape[2] for table in self.tables.values())
        self.context = np.zeros((count, len(CONTEXT_FEATURES)), np.float32)
        self.is_choice = np.zeros((count, most), np.int8)
        self.asked = np.zeros((count, 8), np.int64)  # see `episodes`
        self.rewards = np.zeros((count, 3))  # see `episodes`
        self.world_of = np.zeros(count, np.int64)  # the world of each episode
        self._unbilled = set[int]()  # the episodes that Python must bill when they are over
        self._at_a_time = max(min(count // (4 * threads), _MOST_AT_A_TIME), 1)
        self._threads = min(threads, math.ceil(count / self._at_a_time))
        self._shares = np.linspace(0, count, self._threads + 1).astype(np.int64)  # their bounds
        self._taken, self._counters = self._shares[:-1].copy(), idle_counters(self._threads - 1)
        self._pool: WorkerPool | None = None
        self._is_open = False
        self._actions = np.zeros(count, np.int64)
        self._parts = [new_parts(self.worlds[0], self._shown(at)) for at in range(count)]
        zones = max(len(world.zones) for world in worlds)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NumbaExperimentalFeatureWarning)
            self._book = book_of(rules_for(policy), zones, self.tables["where"].shape[2])
            self._live = episodes_of(self._parts, self._book)
            self._begin(0, count)
            shared = self._shared(self._shares, self._taken, self._at_a_time, self._counters)
        self._step_with: Callable[[int], bool] = partial(_step, self._live, shared)

    def open(
        self, place: int, options: dict[str, Any] | None, generator: np.random.Generator
    ) -> None:
        """Begin an episode in the world `options["world"]`, by default a random one.

        Raises BadInput if there is no such world.
        """
        drawn = int(generator.integers(len(self.worlds)))
        self._open_in(place, int((options or {}).get("world", drawn)))

    def _open_in(self, place: int, world: int) -> None:
        count = len(self.worlds)
        if not 0 <= world < count:
            raise BadInput(f"there is no world {world}: the worlds are 0 to {count - 1}")
        self._is_open = True
        parts = new_parts(self.worlds[world], self._shown(place))
        put_episode(self._live, place, parts, self._book)
        self._parts[place], self.world_of[place] = parts, world
        if not parts.accounts.has_fast_bill:
            self._unbilled.add(place)
        self._begin(place, place + 1)
        self._bill(PENDING)

    def step(self, actions: Integers) -> None:
        """Apply one action to each episode, and advance each to its next decision.

        Raises ResetNeeded before the first episode has begun, and BadInput if an episode is over
        and a grid lacks data for a time that is billed.
        """
        if not self._is_open:
            raise ResetNeeded("call reset() before the first step()")
        if self._pool is None:
            self._pool = WorkerPool(self._step_with, self._threads - 1, self._counters)
        self._actions[:] = actions
        try:
            self._taken[:] = self._shares[:-1]
            self._pool.call()
            while not self._step_with(0):
                self._pool.check()
            self._pool.check()
        except BaseException:  # such as KeyboardInterrupt: no worker may go on unnoticed
            self._taken[:] = self._shares[1:]
            self._pool.wait()
            raise
        self._bill(GIVEN)
        if np.isnan(self.rewards[:, GIVEN]).any():
            raise BadInput(
                "a grid lacks carbon or price for a part of the billed time: give files without "
                "gaps that last until the last job ends, or a shorter length"
            )

    def given(self) -> Floats:
        """Return the rewards of the last step, [B]."""
        return self.rewards[:, GIVEN]

    def is_over(self) -> npt.NDArray[np.bool_]:
        """Return whether each episode is over, [B]."""
        over: npt.NDArray[np.bool_] = self.asked[:, HEAD] == OVER
        return over

    def schedule(self, place: int) -> Schedule:
        """Return what an episode has recorded so far."""
        history = history_of(self._live, place)
        return schedule_in(self.worlds[self.world_of[place]], self._parts[place], *history)

    def credits(self, place: int) -> Floats:
        """Return the reward of each job of an episode, [J]; 0 for jobs not placed yet."""
        return self._parts[place].accounts.credits.copy()

    def zones(self, place: int, count: int) -> Integers:
        """Return the zones of an episode's `count` candidate nodes."""
        cluster = self._parts[place].given.cluster
        return cluster.zone[cluster.found[:count]]

    def close(self) -> None:
        """Stop the threads, if there are any."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def _begin(self, first: int, last: int) -> None:
        """Advance new episodes to their first decision."""
        which = np.array([first, last])
        shared = self._shared(which, which[:1].copy(), last - first, idle_counters(0))
        go_on(self._live, shared, 0, True)

    def _shared(self, shares: Integers, taken: Integers, at_a_time: int, counters: Integers) -> Any:
        return shared_of(self._book, self._actions, shares, taken, at_a_time, counters)

    def _bill(self, into: int) -> None:
        """Add the rest of the reward of finished episodes that Python bills."""
        if not self._unbilled:
            return
        for place in self._unbilled.intersection(np.flatnonzero(self.is_over()).tolist()):
            reward, ready = self.rewards[place], self.worlds[self.world_of[place]]
            whole = reward_of_bill(ready, self.schedule(place))
            reward[into] += whole - reward[IN_ALL]
            reward[IN_ALL] = whole
            self._unbilled.remove(place)

    def _shown(self, place: int) -> Shown:
        own = slice(place, place + 1)
        return Shown(
            self.tables["where"][own], self.tables["when"][own], self.tables["how_fast"][own],
            self.context[own], self.is_choice[place], self.asked[place], self.rewards[place],
        )  # fmt: skip


def _tables_for(
    worlds: Sequence[Prepared], heads: Sequence[HeadName], count: int
) -> dict[HeadName, Singles]:
    """Return empty tables for the most candidates of any world; no columns for other heads."""
    nodes = max(each.most_nodes for each in worlds) if "where" in heads else 0
    starts = max(each.most_starts for each in worlds) if "when" in heads else 0
    power_caps = POWER_CAPS.size if "how_fast" in heads else 0
    return {
        "when": np.zeros((count, len(SLOT_FEATURES), starts), np.float32),
        "where": np.zeros((count, len(NODE_FEATURES), nodes), np.float32),
        "how_fast": np.zeros((count, len(POWER_CAP_FEATURES), power_caps), np.float32),
    }


def _step(live: Any, shared: Any, own: int) -> bool:
    """Do thread `own`'s part of a step; as a function it keeps no batch alive in a helper."""
    return go_on(live, shared, own, False)
