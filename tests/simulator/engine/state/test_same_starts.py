"""The compiled library decides what the simulator's engine decides."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greensched_policies.costs.cost import CostModel, Floats
from greensched_policies.encoding.weights import Weights
from greensched_policies.kernel.plan import Plan, keep
from greensched_policies.library.functions import MOST_STARTS
from greensched_policies.library.grid_table import GridTable, grid_table
from greensched_policies.planning.core_plan import CorePlan
from greensched_policies.planning.outlook import outlook_of
from greensched_policies.planning.planning import StartRequest, plan_all
from greensched_policies.rules.catalogue import WHEN_RULES
from greensched_simulator.arrays.moving import Data
from greensched_simulator.engine.state.choices import rules_of
from greensched_simulator.engine.state.memory import starts_memory
from greensched_simulator.engine.state.starts import UnstartedJob, choose_start
from greensched_simulator.engine.state.terms import RunConfig

pytestmark = pytest.mark.engine

SLOT_S = 900.0
MODEL = CostModel(np.linspace(50.0, 200.0, 11), 1.0, 1.0, False)


@dataclass(frozen=True)
class Case:
    """Zones, what is planned in them, and workloads in the order in which they are decided."""

    carbon: Floats  # [Z,S]
    price: Floats
    capacity: Floats  # [Z]
    kept: list[tuple[int, float, float, float]]  # zone, begin, end, cores
    now_s: float
    runtime_s: list[Floats]  # of each workload, [Z]
    latest_s: list[float]  # rising
    cpu_cores: list[float]
    weights: Weights


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw whole numbers, so that nothing but an error could tell two starts apart."""
    zones, slots = draw(st.integers(1, 3)), draw(st.integers(1, 30))
    dice = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    carbon = dice.integers(0, draw(st.sampled_from([2, 900])), (zones, slots)).astype(float)
    price = dice.integers(-80, 300, (zones, slots)).astype(float)
    for values in (carbon, price):
        values[dice.random(values.shape) < draw(st.sampled_from([0.0, 0.0, 0.1, 1.0]))] = np.nan
    count = draw(st.integers(1, 6))
    runtime_s = dice.integers(1, draw(st.sampled_from([900, 20_000])), (count, zones)).astype(float)
    if zones > 1:
        runtime_s[dice.random(count) < 0.3, 0] = np.inf
    now_s = draw(st.integers(0, slots + 3)) * SLOT_S + draw(st.sampled_from([0.0, 0.0, 450.0]))
    return Case(
        carbon=carbon,
        price=price,
        capacity=dice.integers(1, 20, zones).astype(float),
        kept=[
            (int(zone), begin, begin + runs, cores)
            for zone, begin, runs, cores in zip(
                dice.integers(0, zones, 5),
                dice.integers(0, slots * 900, 5).astype(float),
                dice.integers(1, 9000, 5).astype(float),
                dice.integers(1, 6, 5).astype(float),
                strict=True,
            )
        ],
        now_s=now_s,
        runtime_s=list(runtime_s),
        latest_s=sorted((now_s + dice.integers(-2000, 30_000, count)).tolist()),
        cpu_cores=dice.integers(1, 5, count).astype(float).tolist(),
        # Not half and half: of two zones, one without carbon and one with a negative price, both
        # would then cost the same, whatever the numbers, and rounding would choose.
        weights=Weights(*draw(st.sampled_from([(0.0, 1.0), (1.0, 0.0), (0.6, 0.4)])), 0.0),
    )


def compiled_side(case: Case, slots: int) -> tuple[GridTable, Plan, RunConfig]:
    zones, steps = case.carbon.shape
    grid = grid_table(
        np.arange(zones + 1) * steps,
        np.tile(np.arange(steps) * SLOT_S, zones),
        case.carbon.ravel(),
        case.price.ravel(),
    )
    plan = Plan(np.zeros((zones, slots)), case.capacity)
    for zone, begin_s, end_s, cores in case.kept:
        keep(plan, zone, SLOT_S, begin_s, end_s, cores)
    return grid, plan, RunConfig(0, SLOT_S, 100, case.weights, MODEL)


def numpy_plan(case: Case, slots: int) -> CorePlan:
    plan = CorePlan(case.capacity, 0.0, SLOT_S, slots)
    for zone, begin_s, end_s, cores in case.kept:
        plan.keep(zone, begin_s, end_s, cores)
    return plan


def asked(case: Case, rule: str, place: int) -> StartRequest:
    return StartRequest(
        case.runtime_s[place],
        case.latest_s[place],
        case.cpu_cores[place],
        np.ones_like(case.runtime_s[place]),
        case.weights,
        WHEN_RULES[rule],
        thresholds=None,
    )


@pytest.mark.parametrize("rule", WHEN_RULES)
@settings(max_examples=100)
@given(case=cases())
def test_every_rule_chooses_the_same_starts_and_leaves_the_same_plan(rule: str, case: Case) -> None:
    case = extended(case)
    grid, kept, terms = compiled_side(case, 100)
    outlook, plan = outlook_of(0.0, SLOT_S, case.carbon, case.price), numpy_plan(case, 100)
    everyone = [asked(case, rule, place) for place in range(len(case.latest_s))]
    rules = rules_of(rule, "weighted-cost")
    memory = starts_memory(len(case.capacity), MOST_STARTS, 200)
    wanted = []
    for each in everyone:
        runtime_s = np.array(each.runtime_s)
        run_j = runtime_s * np.array(each.power_w)
        work = UnstartedJob(case.now_s, runtime_s, each.cpu_cores, Data(0.0, 0), run_j)
        start = choose_start(grid, kept, terms, rules, work, each.latest_s, memory)
        end_s = start.start_s + start.runtime_s
        keep(kept, start.zone, SLOT_S, start.start_s, end_s, each.cpu_cores)
        wanted.append((start.start_s, start.zone, start.runtime_s))
    found = plan_all(outlook, plan, everyone, case.now_s)
    assert [(each.start_s, each.run.zone, each.run.runtime_s) for each in found] == wanted
    np.testing.assert_array_equal(plan.cores, kept.cores)


def extended(case: Case) -> Case:
    """Return the case with its last values held for 45 slots more.

    The planner considers no start but now where nothing is forecast; runs still end beyond that.
    """
    carbon, price = (
        np.concatenate([values, np.repeat(values[:, -1:], 45, axis=1)], axis=1)
        for values in (case.carbon, case.price)
    )
    return Case(**{**vars(case), "carbon": carbon, "price": price})
