"""A plan knows which nodes of a zone come next, and what a run takes there."""

import numpy as np
import pytest

from greensched_policies.costs.merit_order import MERIT_STEPS
from greensched_policies.encoding.weights import CarbonLimit, Weights
from greensched_policies.planning.core_plan import CorePlan
from greensched_policies.planning.outlook import Outlook, outlook_of
from greensched_policies.planning.planning import StartReason, StartRequest
from greensched_policies.planning.slot_planning import Interruptible, plan_slots
from greensched_policies.rules.catalogue import WHEN_RULES
from tests.policies.planning.one_start import choose_start

SLOT_S = 900.0
FRUGAL, HUNGRY = 0.5, 1.5  # joules of both halves of a zone, relative to its mean
HALVES = [FRUGAL] * (MERIT_STEPS // 2) + [HUNGRY] * (MERIT_STEPS // 2)
ALIKE = [1.0] * MERIT_STEPS


def outlook(*zones: list[float]) -> Outlook:
    carbon = np.array(zones, float)
    return outlook_of(0.0, SLOT_S, carbon, np.full(carbon.shape, 50.0))


def plan(*cores: list[float], gpus: list[float] | None = None) -> CorePlan:
    """Return zones of 100 cores, one half frugal and one hungry."""
    count = len(cores) or 1
    each_gpus = None if gpus is None else np.array(gpus)
    found = CorePlan(np.full(count, 100.0), 0.0, SLOT_S, 100, each_gpus)
    found.merit[:] = cores or [HALVES]
    return found


def request(
    cpu_cores: float = 1.0, gpus: float = 0.0, slack: int = 3, zones: int = 1,
    limit_price: float = np.inf,
) -> StartRequest:  # fmt: skip
    """Return work of a slot and 3,600 W, that is 0.9 kWh, of which only carbon counts."""
    return StartRequest(
        [SLOT_S] * zones, slack * SLOT_S, cpu_cores, [3600.0] * zones, Weights(0.0, 1.0, 0.0),
        WHEN_RULES["planned-window"], CarbonLimit(limit_price, np.inf), gpus=gpus,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("used", "cpu_cores", "merit"),
    [
        pytest.param(0.0, 1.0, FRUGAL, id="empty"),
        pytest.param(49.0, 1.0, FRUGAL, id="its-middle-is-on-a-frugal-node"),
        pytest.param(50.0, 1.0, HUNGRY, id="only-hungry-ones-are-left"),
        pytest.param(49.5 - 1e-12, 1.0, HUNGRY, id="the-same-but-for-rounding"),
        pytest.param(0.0, 100.0, HUNGRY, id="the-middle-of-a-gang-counts"),
        pytest.param(150.0, 1.0, HUNGRY, id="overfull"),
    ],
)
def test_what_runs_takes_the_frugal_nodes_first(
    used: float, cpu_cores: float, merit: float
) -> None:
    here = plan()
    here.keep(0, 0.0, SLOT_S, used)
    found = choose_start(outlook([300.0] * 24), here, request(cpu_cores, slack=0), 0.0)
    assert found.run.merit == merit
    assert found.run.energy_kwh == pytest.approx(0.9 * merit)


def test_work_waits_for_frugal_nodes_although_the_grid_is_no_cleaner() -> None:
    here = plan()
    here.keep(0, 0.0, 2 * SLOT_S, 60.0)
    found = choose_start(outlook([300.0] * 24), here, request(), 0.0)
    assert (found.start_s, found.why) == (2 * SLOT_S, StartReason.PLANNED)
    assert (found.run.merit, found.run_now.merit) == (FRUGAL, HUNGRY)
    assert found.saving == pytest.approx(1.0 - FRUGAL / HUNGRY)


@pytest.mark.parametrize(
    ("later", "start"),
    [
        pytest.param(880.0, 1, id="fewer-grams-of-the-run"),
        pytest.param(920.0, 0, id="more-grams-of-the-run"),
    ],
)
def test_the_carbon_limit_counts_the_grams_of_the_run_on_the_nodes_that_come_next(
    later: float, start: int
) -> None:
    """A run on hungry nodes at 300 g/kWh emits what one on frugal nodes does at 900."""
    here = plan()
    here.keep(0, 0.0, SLOT_S, 60.0)
    prices = np.array([[50.0] + [1.0] * 23])
    grid = outlook_of(0.0, SLOT_S, np.array([[300.0] + [later] * 23]), prices)
    asked = request()._replace(weights=Weights(1.0, 0.0, 0.0))
    found = choose_start(grid, here, asked, 0.0)
    assert found.start_s == start * SLOT_S


def test_a_zone_whose_frugal_nodes_are_taken_is_left_for_a_dirtier_one() -> None:
    grid = outlook([200.0] * 24, [300.0] * 24)
    free, taken = plan(HALVES, ALIKE), plan(HALVES, ALIKE)
    taken.keep(0, 0.0, 30 * SLOT_S, 60.0)
    zones = [
        choose_start(grid, here, request(slack=0, zones=2), 0.0).run.zone for here in (free, taken)
    ]
    # 200 g at 1.5 of the mean energy are as much as 300 g at 1.0: the first of equal zones.
    assert zones == [0, 0]
    dearer = outlook([201.0] * 24, [300.0] * 24)
    assert choose_start(dearer, taken, request(slack=0, zones=2), 0.0).run.zone == 1


@pytest.mark.parametrize(("gpus", "merit"), [(3.0, FRUGAL), (6.0, HUNGRY)])
def test_work_with_gpus_takes_the_nodes_of_the_gpus_that_are_left(
    gpus: float, merit: float
) -> None:
    here = plan(gpus=[8.0])
    here.keep(0, 0.0, SLOT_S, 90.0, gpus)
    found = choose_start(outlook([300.0] * 24), here, request(gpus=1.0, slack=0), 0.0)
    assert found.run.merit == merit


def test_work_that_may_pause_runs_in_the_slots_with_frugal_nodes() -> None:
    here = plan()
    here.keep(0, SLOT_S, 3 * SLOT_S, 60.0)
    work = Interruptible(
        runtime_s=np.array([2 * SLOT_S]), latest_s=4 * SLOT_S, cpu_cores=1.0,
        power_w=np.array([3600.0]), weights=Weights(0.0, 1.0, 0.0),
        when=WHEN_RULES["planned-window"], restart_s=0.0, most_restarts=9.0,
    )  # fmt: skip
    found = plan_slots(outlook([300.0] * 40), here, work, 0.0, thresholds=None)
    assert found is not None
    assert all(end <= SLOT_S or begin >= 3 * SLOT_S for begin, end in found.run_segments)
    run, now = found.chosen.run, found.chosen.run_now
    assert (run.merit, now.merit) == (FRUGAL, (FRUGAL + HUNGRY) / 2.0)
    assert run.energy_kwh == pytest.approx(1.8 * FRUGAL)
