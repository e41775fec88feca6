"""The slots that the library chooses for work that may be suspended are the simulator's."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greensched_policies.costs.cost import CostModel, Floats
from greensched_policies.costs.pausing import planned_slots
from greensched_policies.encoding.slots import SlotColumns
from greensched_policies.encoding.weights import Weights
from greensched_policies.kernel.plan import Plan, keep
from greensched_policies.library.grid_table import grid_table
from greensched_policies.planning.core_plan import CorePlan
from greensched_policies.planning.library_calls import see_slots
from greensched_policies.planning.outlook import outlook_of
from greensched_policies.planning.planning import NO_ZONE
from greensched_policies.planning.slot_planning import Interruptible, plan_slots
from greensched_policies.rules.catalogue import WHEN_RULES
from greensched_policies.rules.pause import pause_if_worth
from greensched_simulator.arrays.moving import Data
from greensched_simulator.engine.execution.runs import columns_by_zone, pause_seen
from greensched_simulator.engine.state.starts import UnstartedJob
from greensched_simulator.engine.state.terms import RunConfig

pytestmark = pytest.mark.engine

SLOT_S = 900.0
MODEL = CostModel(np.linspace(50.0, 200.0, 11), 1.0, 1.0, False)
SLOTS = 80  # of the grid: more than any plan here looks at


@dataclass(frozen=True)
class Case:
    """Zones, what is planned in them, and a workload."""

    carbon: Floats  # [Z,S]
    price: Floats
    capacity: Floats  # [Z]
    kept: list[tuple[int, float, float, float]]  # zone, begin, end, cores
    now_s: float
    work: Interruptible


@st.composite
def cases(draw: st.DrawFn, rule: str) -> Case:
    """Draw whole numbers, so that nothing but an error could tell two choices apart."""
    zones = draw(st.integers(1, 3))
    dice = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = (zones, SLOTS)
    now_s = float(draw(st.integers(0, 5)) * SLOT_S + draw(st.sampled_from([0.0, 450.0])))
    runtime_s = dice.integers(300, 20_000, zones).astype(float)
    return Case(
        carbon=dice.integers(20, 900, shape).astype(float),
        price=dice.integers(-80, 300, shape).astype(float),
        capacity=dice.integers(3, 20, zones).astype(float),
        kept=[(int(dice.integers(zones)), float(begin), float(begin + 5000), 3.0)
              for begin in dice.integers(0, 40_000, 4)],
        now_s=now_s,
        work=Interruptible(
            runtime_s=runtime_s,
            latest_s=now_s + float(dice.integers(-2000, 30_000)),
            cpu_cores=float(dice.integers(1, 4)),
            power_w=np.ones(zones),
            weights=Weights(*draw(st.sampled_from([(0.0, 1.0), (1.0, 0.0), (0.5, 0.5)])), 0.0),
            when=WHEN_RULES[rule],
            restart_s=draw(st.sampled_from([0.0, 60.0, 600.0, 2000.0])),
            most_restarts=draw(st.sampled_from([0.0, 1.0, 99.0])),
            running_in=draw(st.integers(NO_ZONE, zones - 1)),
        ),
    )  # fmt: skip


def columns_of_simulator(case: Case, count: int) -> SlotColumns:
    zones, steps = case.carbon.shape
    grid = grid_table(
        np.arange(zones + 1) * steps, np.tile(np.arange(steps) * SLOT_S, zones),
        case.carbon.ravel(), case.price.ravel(),
    )  # fmt: skip
    plan = Plan(np.zeros((zones, SLOTS)), case.capacity)
    for zone, begin_s, end_s, cores in case.kept:
        keep(plan, zone, SLOT_S, begin_s, end_s, cores)
    terms, work = RunConfig(0, SLOT_S, 100, case.work.weights, MODEL), case.work
    run_j = work.runtime_s * work.power_w
    later = UnstartedJob(case.now_s, work.runtime_s, work.cpu_cores, Data(0.0, 0), run_j)
    return columns_by_zone(grid, plan, terms, later, count)


def simulated(case: Case) -> tuple[int, list[int]] | None:
    """Return zone and slots as `choose_runs` finds them; None where it plans none."""
    work, is_running = case.work, case.work.running_in != NO_ZONE
    needed = np.ceil(work.runtime_s / SLOT_S - 1e-9).astype(int)
    left_s = work.latest_s - case.now_s
    spare = int(np.floor(left_s / SLOT_S + 1e-9)) if left_s > 0.0 else 0
    if spare < 1 or (needed.max() < 2 and not is_running):
        return None
    cost = work.when(columns_of_simulator(case, int(needed.max()) + spare))
    best, least = (NO_ZONE, np.zeros(0, bool)), np.inf
    for zone, runtime_s in enumerate(work.runtime_s.tolist()):
        if is_running and zone != work.running_in:
            continue
        restart = pause_if_worth(pause_seen(work.restart_s, runtime_s, SLOT_S))[0, 0]
        chosen, total = planned_slots(
            cost[zone, : needed[zone] + spare], runtime_s, SLOT_S, work.restart_s, restart,
            work.most_restarts, is_running,
        )  # fmt: skip
        if total < least or best[0] == NO_ZONE:
            best, least = (zone, chosen), total
    return best[0], np.flatnonzero(best[1]).tolist()


def planned(case: Case) -> tuple[int, list[int]] | None:
    outlook = outlook_of(0.0, SLOT_S, case.carbon, case.price)
    found = plan_slots(outlook, core_plan(case), case.work, case.now_s, thresholds=None)
    if found is None:
        return None
    slots = [
        int(place)
        for begin_s, end_s in found.run_segments
        for place in np.arange(begin_s - case.now_s, end_s - case.now_s, SLOT_S) // SLOT_S
    ]
    return found.chosen.kept_zone, slots


def core_plan(case: Case) -> CorePlan:
    plan = CorePlan(case.capacity, 0.0, SLOT_S, SLOTS)
    for zone, begin_s, end_s, cores in case.kept:
        plan.keep(zone, begin_s, end_s, cores)
    return plan


@settings(max_examples=100)
@given(cases("planned-window"), st.integers(1, 40))
def test_slots_look_alike(case: Case, count: int) -> None:
    outlook = outlook_of(0.0, SLOT_S, case.carbon, case.price)
    work = case.work
    needs = work.cpu_cores, work.gpus, 0.0
    by_zone = np.array([work.runtime_s, work.power_w])
    found, _ = see_slots(outlook, core_plan(case), case.now_s, by_zone, needs, work.weights, count)
    wanted = columns_of_simulator(case, count)
    for name, ours, theirs in zip(SlotColumns._fields, found, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("rule", ["planned-window", "cheapest-window", "carbon-time", "run-now"])
@settings(max_examples=60)
@given(data=st.data())
def test_the_same_slots_are_chosen(rule: str, data: st.DataObject) -> None:
    case = data.draw(cases(rule))
    assert planned(case) == simulated(case)
