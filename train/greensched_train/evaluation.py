"""Runs policies in all worlds of some scenarios: what each costs, and which deadlines it misses."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from greensched_core.errors import BadInput
from greensched_policies.rules.catalogue import CAP_RULES, WHEN_RULES
from greensched_simulator.policy import BASELINE, PLACINGS, policy_named
from greensched_simulator.runs.simulation import simulate
from greensched_simulator.world.scenario_loading import load_scenario
from greensched_simulator.world.world import build_world
from greensched_train.scored_worlds import ScoredWorld
from greensched_train.world_pool import processes

DoneCallback = Callable[["WorldOutcome"], None]  # called after each world


class PolicyOutcome(NamedTuple):
    """What a policy does in a world."""

    cost_ratio: float  # J, relative to run-now+spread
    missed: float  # share of deadlines
    cost: float  # in the scenario's currency
    carbon_g: float


class WorldOutcome(NamedTuple):
    """What policies do in a scenario with a seed."""

    scenario: str
    seed: int
    load: float
    policies: Mapping[str, PolicyOutcome]  # by their names; run-now+spread among them


def all_combinations(wheres: Sequence[str] = tuple(PLACINGS)) -> list[str]:
    """Return all combinations of a when, a where and a cap rule: the baselines of a bundle."""
    return [f"{when}+{where}+{cap}" for when in WHEN_RULES for where in wheres for cap in CAP_RULES]


def scenario_files(folder: Path) -> list[Path]:
    """Return the scenario files of a folder. Raises BadInput if it has none."""
    files = sorted(folder.glob("*.yaml"))
    if not files:
        raise BadInput(f"{folder} has no scenario: give a folder of *.yaml files")
    return files


def evaluated_worlds(
    policies: Sequence[str],
    files: Sequence[Path],
    seeds: int,
    on_world: DoneCallback,
    process_count: int | None = None,
) -> list[WorldOutcome]:
    """Return what policies do in all scenarios, each with seeds 1 to `seeds`; in that order.

    Raises BadInput for policies, scenarios and data that cannot be used.
    """
    for each in policies:
        policy_named(each)
    found = list[WorldOutcome]()
    with processes(process_count) as executor:
        runs = [
            executor.submit(_outcome_of, tuple(policies), file, seed)
            for file in files
            for seed in range(1, seeds + 1)
        ]
        for run in runs:
            found.append(run.result())
            on_world(found[-1])
    return found


def _outcome_of(policies: Sequence[str], file: Path, seed: int) -> WorldOutcome:
    scenario = load_scenario(file)
    load = scenario.workload.load or 0.0
    world = ScoredWorld(build_world(scenario, seed), load)
    outcomes = {each: _outcome_in(world, each) for each in dict.fromkeys((BASELINE, *policies))}
    return WorldOutcome(scenario.name, seed, load, outcomes)


def _outcome_in(world: ScoredWorld, policy: str) -> PolicyOutcome:
    ran = simulate(world.world, policy_named(policy))
    score, total = world.score_of(ran, price_of_misses=0.0), world.amounts_of(ran)
    return PolicyOutcome(score.cost_ratio, score.missed, total.cost, total.carbon_g)
