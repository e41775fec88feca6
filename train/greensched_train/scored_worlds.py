"""How good nets are in a world: what a run costs against run-now+spread, and what it misses."""

import os
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from greensched_core.errors import BadInput
from greensched_core.units import SECONDS_PER_DAY
from greensched_policies.billing.accounting import BillTotal, total_bill
from greensched_policies.encoding.reward import ROUNDING_S, penalty_of, reward_of, shares_of
from greensched_policies.library.nets import packed
from greensched_policies.planning.outlook import SLOT_S
from greensched_simulator.policy import BASELINE, LEARNED, Policy, policy_named
from greensched_simulator.runs.learned_heads import LearnedHeads
from greensched_simulator.runs.ready_run import ReadyRun
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import MissingData, bill_of, simulate
from greensched_simulator.world.scenario_loading import load_scenario
from greensched_simulator.world.world import World, build_world
from greensched_train.data_split import DATA_PARTS, MARGIN, DataPart
from greensched_train.drawn_scenarios import drawn_scenario
from greensched_train.residual_nets import Nets

ALL_HEADS = Policy(LEARNED, LEARNED, cap=LEARNED, bundle="in training")
# What deadlines may be missed: stricter than what `make bench-policy` allows, so that worlds that
# were not seen have a margin.
FULL_LOAD = 0.8
ALLOWED = 0.003  # share of deadlines, up to FULL_LOAD
ALLOWED_BEYOND = 0.0015  # share beyond what the baseline misses
_MOST_DRAWN = 100  # worlds, until one has all data
_FAR_AWAY = 1_000_003
_MOST_KEPT = 64  # worlds in the memory of a process


class Score(NamedTuple):
    """A run in a world, against run-now+spread."""

    objective: float  # J, 1 as run-now+spread costs, and the price of deadlines missed
    cost_ratio: float  # J alone
    missed: float  # share of deadlines
    excess: float  # share of deadlines beyond what is allowed


class ScoredWorld:
    """A world, ready to run by any nets, and its baseline.

    Held jobs are planned again each quarter of an hour, instead of each minute as in the operator:
    runs in which many jobs wait then take less time. Their ends are near the operator's, not equal.
    """

    def __init__(self, world: World, load: float) -> None:
        """Raise BadInput if a grid lacks data for a time that is billed.

        `load` is the share of all cores that the work would keep busy.
        """
        self.world, self.load = world, load
        self._until_s = world.length_s + MARGIN.days * SECONDS_PER_DAY
        self._deadlines = max(int(np.isfinite(world.jobs.deadline_s).sum()), 1)
        ran = simulate(world, policy_named(BASELINE))
        total = self.amounts_of(ran)
        self._shares = shares_of(world.weights, total.cost, total.carbon_g, self._deadlines)
        self._scale = self._cost_of(ran)
        beyond = self.missed_by(ran) + ALLOWED_BEYOND
        self._allowed = max(ALLOWED, beyond) if load <= FULL_LOAD else beyond
        self._ready = ReadyRun(world, ALL_HEADS, replan_every_s=SLOT_S)

    def run(self, nets: Nets) -> Schedule:
        """Return the schedule if all heads decide by these nets."""
        heads = {name: packed(net) for name, net in nets.items()}
        return self._ready.run(LearnedHeads(**heads)).schedule

    def score(self, nets: Nets, price_of_misses: float) -> Score:
        """Return how good nets are."""
        return self.score_of(self.run(nets), price_of_misses)

    def score_of(self, ran: Schedule, price_of_misses: float) -> Score:
        """Return how good a schedule is."""
        ratio, missed = self._cost_of(ran) / self._scale, self.missed_by(ran)
        excess = max(missed - self._allowed, 0.0)
        return Score(ratio + price_of_misses * excess, ratio, missed, excess)

    def score_of_rules(self, policy: str, price_of_misses: float) -> Score:
        """Return how good a policy of rules is."""
        return self.score_of(simulate(self.world, policy_named(policy)), price_of_misses)

    def missed_by(self, ran: Schedule) -> float:
        """Return the share of deadlines that a schedule misses."""
        late = ran.end_s - self.world.jobs.deadline_s > ROUNDING_S
        return float(late.sum()) / self._deadlines

    def amounts_of(self, ran: Schedule) -> BillTotal:
        """Return what a schedule costs, from the world's begin to the same end for all."""
        return total_bill(bill_of(self.world, ran, self._until_s))

    def _cost_of(self, ran: Schedule) -> float:
        """Return J of a schedule, by the world's weights: see `reward`."""
        total = self.amounts_of(ran)
        penalty = float(penalty_of(ran.end_s, self.world.jobs.deadline_s).sum())
        return -reward_of(total.cost, total.carbon_g, penalty, self._shares)


@lru_cache(maxsize=_MOST_KEPT)
def scored_world(source: str, seed: int) -> ScoredWorld:
    """Return the world of a seed, from memory if it was asked for lately.

    `source` is the name of a part of the data, or a folder of scenario files. Raises BadInput for
    files and data that cannot be used.
    """
    for part in DATA_PARTS:
        if part.name == source:
            return _drawn(part, seed)
    files = sorted(Path(source).glob("*.yaml"))
    scenario = load_scenario(files[seed % len(files)])
    return ScoredWorld(build_world(scenario, seed), scenario.workload.load or 0.0)


def _drawn(part: DataPart, seed: int) -> ScoredWorld:
    """Return a world of a part of the data; of another seed if its grid lacks data.

    The other seeds are far from those that others ask for.
    """
    for attempt in range(_MOST_DRAWN):
        scenario = drawn_scenario(part, seed + attempt * _FAR_AWAY, os.environ)
        try:
            return ScoredWorld(build_world(scenario, seed), scenario.workload.load or 0.0)
        except MissingData as fault:
            last = fault
    raise BadInput(f"none of {_MOST_DRAWN} worlds of {part.name} data can be used: {last}")
