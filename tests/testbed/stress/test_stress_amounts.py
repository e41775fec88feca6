"""What a run took by its pods' cores and their nodes' curves, and by the grid as it was."""

from dataclasses import replace

import pytest

from greensched_core.clock import ManualClock
from greensched_core.power.curves import PowerCurve
from greensched_core.state import Node
from greensched_extender.settings import ExtenderSettings
from greensched_operator.ledger.grid_history import GridHistory
from greensched_testbed.stress.amounts import MeterSources, ShippedAssumptions, amounts_by_meter
from greensched_testbed.stress.ground import Ground
from greensched_testbed.stress.job_log import JobRun
from greensched_testbed.stress.suite import StressJob, StressKind

BEGAN_S = 1_795_000_000.0
CURVE = PowerCurve(tuple(100.0 + 10.0 * step for step in range(11)))  # 100 W idle, 200 W full
NODE = Node("n1", "DE", 8.0, 2.0**35, None, CURVE, "annotation", "")
JOB = StressJob("cpu-0", StressKind.CPU, 0.0, 2.0, 2**26, 0, 900, 6.0)
RUN = JobRun(
    JOB, BEGAN_S, BEGAN_S, BEGAN_S, BEGAN_S + 10.0, "completed", "n1", "cpu-0-x", "u1"
)  # fmt: skip
GRAMS_PER_KWH, PRICE_PER_MWH = 360.0, 100.0


def meters(*nodes: Node) -> MeterSources:
    clock = ManualClock(BEGAN_S)
    history = GridHistory(lambda *_: (GRAMS_PER_KWH, PRICE_PER_MWH), clock)
    history.note(["DE"])
    signals = ExtenderSettings.model_construct().grid_signals()
    by_name = {node.name: node for node in nodes}
    return MeterSources(Ground(by_name, (), False, signals, history), ShippedAssumptions(1.25, 0.5))


async def test_requested_cores_are_billed_by_the_curve_at_the_sites_wall() -> None:
    told, faults = await amounts_by_meter(meters(NODE), "ns", [RUN])
    # 2 of 8 cores are 25 W above idle, for ten seconds, times the PUE.
    assert told["curve"].energy_j == pytest.approx(25.0 * 10.0 * 1.25)
    assert told["curve"].carbon_g == pytest.approx(312.5 / 3.6e6 * GRAMS_PER_KWH)
    assert told["curve"].cost == pytest.approx(312.5 / 3.6e9 * PRICE_PER_MWH)
    assert (list(told), faults) == (["curve"], ())


async def test_two_on_a_node_take_what_both_add_to_it() -> None:
    beside = replace(RUN, job=replace(JOB, cores=6.0), pod_uid="u2")
    told, _ = await amounts_by_meter(meters(replace(NODE, pue=1.0)), "ns", [RUN, beside])
    assert told["curve"].energy_j == pytest.approx(100.0 * 10.0)


async def test_a_node_whose_grid_nobody_knows_has_no_carbon_and_no_cost() -> None:
    told, _ = await amounts_by_meter(meters(replace(NODE, zone="")), "ns", [RUN])
    assert told["curve"].energy_j and told["curve"].carbon_g is told["curve"].cost is None


async def test_what_ran_on_a_node_that_came_later_makes_the_sum_unknown() -> None:
    elsewhere = replace(RUN, node="n9", pod_uid="u2", job=replace(JOB, name="cpu-1"))
    told, faults = await amounts_by_meter(meters(NODE), "ns", [RUN, elsewhere])
    assert told == {}
    assert faults == ("energy is not known: cpu-1 ended on an unknown node",)


async def test_what_still_runs_is_not_billed() -> None:
    running = replace(RUN, finished_at=None, end="")
    told, faults = await amounts_by_meter(meters(NODE), "ns", [running])
    assert (told, faults) == ({}, ("no pod was seen to run and end",))


FAILED = replace(
    RUN, job=replace(JOB, name="cpu-1"), bound_at=None, started_at=None, end="failed", node="",
    pod_uid="u2",
)  # fmt: skip


async def test_a_job_that_never_ran_is_named_and_the_energy_of_the_others_kept() -> None:
    never_ran = replace(FAILED, ended_unbound=True)
    alone, _ = await amounts_by_meter(meters(NODE), "ns", [RUN])
    amounts, faults = await amounts_by_meter(meters(NODE), "ns", [RUN, never_ran])
    assert amounts == alone
    assert faults == ("cpu-1 failed and never ran: the energy is that of the other Jobs",)


@pytest.mark.parametrize(
    "failed",
    [
        pytest.param(FAILED, id="its-pod-was-not-seen-to-end"),
        pytest.param(replace(FAILED, bound_at=BEGAN_S, node="n1"), id="its-pod-had-a-node"),
    ],
)
async def test_a_failed_job_that_may_have_run_makes_the_sum_unknown(failed: JobRun) -> None:
    amounts, faults = await amounts_by_meter(meters(NODE), "ns", [RUN, failed])
    assert amounts == {}
    assert faults == ("energy is not known: cpu-1 failed, may have run, and was not seen to start",)
