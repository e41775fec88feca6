"""Steps per second of the environments, a part of `make bench-simulator`."""

import time
from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from greensched_simulator.arrays.jobs import JobArrays
from greensched_simulator.environments.single import GreenSchedEnv
from greensched_simulator.environments.vector import GreenSchedVectorEnv
from greensched_simulator.world.world import World

_JOBS = 1_000  # of an episode
_WORLDS = 16
_MANY = 256  # environments
_THREADS = 2


class Effort(NamedTuple):
    """How long the environments are timed."""

    turns: int
    steps: int  # per turn of one environment
    steps_of_each: int  # per turn of many


FULL = Effort(turns=7, steps=20_000, steps_of_each=400)
SMALLEST = Effort(turns=1, steps=100, steps_of_each=4)


def environment_figures(
    make: Callable[[int, int], World], policy: str, effort: Effort
) -> dict[str, Any]:
    """Time one environment of 100 nodes, and 256 of 64; `make` takes nodes and jobs.

    Random choice of actions takes part of the time. First each job is placed on arrival, then also
    after a wait that the policy's when rule chooses.
    """
    where_policy = "run-now+weighted-cost"
    at_once = {
        nodes: _episodes(make(nodes, _WORLDS * _JOBS), can_wait=False) for nodes in (64, 100)
    }
    waiting = _episodes(make(64, _WORLDS * _JOBS), can_wait=True)
    two, one = (effort, _THREADS), (effort, 1)
    return (
        _one("env_steps_per_s_100", GreenSchedEnv(at_once[100], where_policy), effort)
        | _many("venv_steps_per_s", at_once[64], where_policy, "where", *two)
        | _many("venv_steps_per_s_1_thread", at_once[64], where_policy, "where", *one)
        | _many("venv_steps_per_s_waiting", waiting, policy, "where", *two)
        | _many("venv_steps_per_s_when", waiting, policy, "when", *two)
    )


def _episodes(world: World, *, can_wait: bool) -> list[World]:
    """Split a world into worlds of 1,000 jobs; without deadlines if no job can wait."""
    found = []
    for first in range(0, _WORLDS * _JOBS, _JOBS):
        own = JobArrays._make(column[first : first + _JOBS].copy() for column in world.jobs)
        begin_s = own.arrival_s[0]
        own = own._replace(arrival_s=own.arrival_s - begin_s, deadline_s=own.deadline_s - begin_s)
        if not can_wait:
            own = own._replace(deadline_s=np.full(_JOBS, np.inf))
        found.append(world._replace(jobs=own, length_s=float(own.arrival_s[-1])))
    return found


def _one(name: str, env: GreenSchedEnv, effort: Effort) -> dict[str, Any]:
    dice, rates = np.random.default_rng(1), []
    _, info = env.reset(seed=1)
    for turn in range(effort.turns + 1):
        began = time.perf_counter()
        for _ in range(effort.steps):
            *_, is_over, _, info = env.step(int(dice.random() * info["candidates"]))
            if is_over:
                _, info = env.reset()
        if turn:  # the first turn warms up
            rates.append(effort.steps / (time.perf_counter() - began))
    shape = env.observation_space["candidates"].shape  # type: ignore[index]  # it is a Dict
    return _report(name, rates, f"one environment, {shape}, through Gymnasium")


def _many(
    name: str, worlds: list[World], policy: str, head: Any, effort: Effort, threads: int
) -> dict[str, Any]:  # fmt: skip
    env = GreenSchedVectorEnv(
        worlds, policy, head, num_envs=_MANY, threads=threads, copies=False
    )  # fmt: skip
    dice, rates = np.random.default_rng(1), []
    *_, info = env.reset(seed=1)
    for turn in range(effort.turns + 1):
        began = time.perf_counter()
        for _ in range(effort.steps_of_each):
            *_, info = env.step((dice.random(_MANY) * info["candidates"]).astype(np.int64))
        if turn:
            rates.append(_MANY * effort.steps_of_each / (time.perf_counter() - began))
    env.close()
    shape = env.single_observation_space["candidates"].shape  # type: ignore[index]  # it is a Dict
    return _report(
        name, rates, f"{_MANY} environments, {head}, {shape} each, {policy}, {threads} threads"
    )  # fmt: skip


def _report(name: str, rates: list[float], what: str) -> dict[str, Any]:
    print(
        f"{name}: {median(rates):,.0f} steps/s ({min(rates):,.0f} – {max(rates):,.0f}; "
        f"{len(rates)} turns): {what}"
    )
    return {name: median(rates), f"{name}_turns": rates}
