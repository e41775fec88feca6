"""What a workload draws and how long it takes in a zone: nodes, GPUs, or its own profile."""

import math
from dataclasses import replace

import pytest

from greensched_core.cluster_settings import PowerAssumptions
from greensched_core.power.curves import PowerCurve
from greensched_core.power.hardware import Gpu
from greensched_core.state import Node
from greensched_operator.controller.recording import ledger_estimates
from greensched_operator.holding.judging import MayWait, judge, left_to_run_s, profile_fault
from greensched_operator.objects.cron_jobs import CronJob
from greensched_operator.objects.job_power_profile import JobPowerProfile, parse_job_power_profile
from greensched_operator.planning.cluster_state import Zone, mean_zone
from greensched_operator.planning.plan_annotations import decision_of
from greensched_operator.planning.situation import Situation
from greensched_operator.planning.start_planning import plan_starts
from greensched_operator.planning.work_power import run_s, speeds_for, work_watts
from greensched_policies.costs.merit_order import ALIKE
from tests.operator.annotated_work import HOUR_S, NOW_S, marks, rules, work_of
from tests.operator.situations import situation_of

ASSUMED = PowerAssumptions(utilisation_ratio=0.5, gpu_ratio=0.6, default_pue=1.2)
STRAIGHT = PowerCurve(tuple(100.0 + 10.0 * point for point in range(11)))  # 100 to 200 W
CPUS = Zone("A", 64.0, watts_per_core=5.0, pue=1.5)
GPUS = Zone("B", 64.0, watts_per_core=5.0, watts_per_gpu=240.0, gpus=8.0, speed=2.0, pue=1.25)


def node(
    name: str, cores: float, *, speed: float, pue: float | None = None, gpu: Gpu | None = None
) -> Node:
    return Node(name, "A", cores, 1.0, gpu, STRAIGHT, "annotation", "m", speed, pue)


def waiting(gpus: float = 0.0, profile: JobPowerProfile | None = None) -> MayWait:
    work = replace(work_of("train", marks(deadline="8h", runtime="1h")), gpus=gpus)
    found = judge(work, replace(rules(), profile=lambda *_: profile), NOW_S)
    assert isinstance(found, MayWait)
    return found


def profile(**spec: object) -> JobPowerProfile:
    found = parse_job_power_profile(
        {"metadata": {"name": "p", "namespace": "team"}, "spec": spec}
    ).profile
    assert found is not None
    return found


def test_a_zones_means_are_by_cores_and_the_watts_of_a_gpu_by_gpus() -> None:
    slow = node("slow", 10.0, speed=0.5, pue=1.0)
    fast = node("fast", 30.0, speed=1.5, gpu=Gpu("m", 4, 50.0, 350.0))
    zone = mean_zone("A", [slow, fast], ASSUMED)
    assert (zone.cpu_cores, zone.gpus) == (40.0, 4.0)
    # Half load of each is 50 W above idle, at a PUE of 1 and of 1.2.
    assert zone.watts_per_core == pytest.approx((50.0 + 60.0) / 40.0)
    assert zone.watts_per_gpu == pytest.approx(300.0 * 0.6 * 1.2)
    assert zone.speed == pytest.approx(40.0 / (10.0 / 0.5 + 30.0 / 1.5))
    assert zone.pue == pytest.approx((10.0 * 1.0 + 30.0 * 1.2) / 40.0)


def test_a_zones_work_takes_the_nodes_that_need_least_energy_first() -> None:
    # The second is four times as fast, with three times the cores, for 1.2 times the watts.
    slow = node("slow", 10.0, speed=0.5, pue=1.0)
    fast = node("fast", 30.0, speed=2.0, gpu=Gpu("m", 4, 50.0, 350.0))
    of_cores, of_gpus = mean_zone("A", [slow, fast], ASSUMED).merit
    assert of_cores[0] == pytest.approx((60.0 / 30.0 / 2.0) / (110.0 / 40.0 * 35.0 / 40.0))
    assert of_cores[-1] / of_cores[0] == pytest.approx(10.0)
    assert of_gpus == pytest.approx(ALIKE)


@pytest.mark.parametrize(
    ("runtime", "runtime_s", "source"),
    [
        pytest.param(None, 5.5 * HOUR_S, "power profile", id="else-the-profiles-phases"),
        pytest.param("1h", HOUR_S, "annotation", id="first-the-annotation"),
    ],
)
def test_work_with_a_profile_takes_as_long_as_its_phases(
    runtime: str | None, runtime_s: float, source: str
) -> None:
    """By the policy's default, an hour, it would be released too late for its deadline."""
    phases = profile(
        startup=[{"duration": "30m", "watts": 40}], work=[{"duration": "5h", "watts": 90}]
    )
    asked = marks(deadline="12h", power_profile="p")
    if runtime is not None:
        asked |= marks(runtime=runtime)
    work, known = work_of("train", asked), replace(rules(), profile=lambda *_: phases)
    found = judge(work, known, NOW_S)
    assert isinstance(found, MayWait)
    assert (found.terms.runtime_s, found.terms.runtime_from) == (runtime_s, source)
    assert found.terms.latest_start_s < NOW_S + 12 * HOUR_S - runtime_s
    assert left_to_run_s(work, known, speed=0.5) == 2.0 * runtime_s


def test_a_profile_that_is_not_there_is_told_and_one_that_is_there_is_not() -> None:
    named = work_of("train", marks(deadline="8h", runtime="1h", power_profile="trian"))
    told = profile_fault(named, rules())
    assert "the JobPowerProfile 'trian' is missing in namespace team" in told
    there = profile(work=[{"duration": "1h", "watts": 90}])
    assert profile_fault(named, replace(rules(), profile=lambda *_: there)) == ""
    assert profile_fault(waiting().work, rules()) == "", "no profile is named"


def test_without_a_profile_cores_and_gpus_draw_what_they_do_on_the_mean_node() -> None:
    one = waiting(gpus=2.0)
    assert work_watts(one.work, one.terms, [GPUS]) == [pytest.approx(1.0 * 5.0 + 2.0 * 240.0)]


def test_a_profile_says_the_watts_of_each_pod_whatever_it_requests() -> None:
    phases = profile(startup=[{"duration": "10m", "watts": 60}],
                     work=[{"duration": "30m", "watts": 260}])  # fmt: skip
    one = waiting(gpus=2.0, profile=phases)
    three = replace(one.work, pods=3)
    mean_w = (10.0 * 60.0 + 30.0 * 260.0) / 40.0
    assert work_watts(three, one.terms, [CPUS]) == [pytest.approx(3 * mean_w * 1.5)]


@pytest.mark.parametrize(
    ("zones", "watts"),
    [
        pytest.param([(64.0, 4.0, 1.0), (64.0, 8.0, 2.0)], [40.0, 80.0], id="only-pue"),
        pytest.param([(64.0, 3.0, 1.0), (64.0, 9.0, 1.0)], [20.0, 60.0], id="three-times-as-many"),
        pytest.param([(96.0, 3.0, 1.0), (32.0, 9.0, 1.0)], [80 / 3, 80.0], id="mean-by-cores"),
        pytest.param([(64.0, 0.0, 1.0), (64.0, 0.0, 1.0)], [40.0, 40.0], id="nothing-known"),
    ],
)
def test_a_profiles_watts_differ_between_zones_as_those_of_their_nodes(
    zones: list[tuple[float, float, float]], watts: list[float]
) -> None:
    one = waiting(profile=profile(work=[{"duration": "1h", "watts": 40}]))
    found = [Zone("Z", cores, watts_per_core=core_w, pue=pue) for cores, core_w, pue in zones]
    assert work_watts(one.work, one.terms, found) == pytest.approx(watts)


def test_zones_that_cannot_take_the_work_change_nothing_of_a_profile() -> None:
    one = waiting(gpus=1.0, profile=profile(work=[{"duration": "1h", "watts": 400}]))
    assert work_watts(one.work, one.terms, [CPUS, GPUS])[1] == pytest.approx(400.0 * 1.25)


@pytest.mark.parametrize("source", ["annotation", "past runs", "power profile", "default"])
def test_a_runtime_is_shorter_on_faster_nodes_whatever_it_is_from(source: str) -> None:
    terms = replace(waiting().terms, runtime_from=source)
    assert run_s(terms, GPUS.speed) == terms.runtime_s / 2.0
    assert run_s(terms, 0.0) == math.inf


def test_a_run_of_a_cron_job_takes_as_long_for_the_plan_as_for_the_scheduler() -> None:
    """The extender divides the plan's runtime by the node's speed."""
    nightly = CronJob("team", "nightly", "c", {}, "0 0 1 1 *", "", (3600.0,) * 3)
    owner = {"kind": "CronJob", "name": "nightly", "uid": "c", "controller": True}
    work = work_of("run", marks(deadline="8h"), owner=owner)
    found = judge(work, replace(rules(cron_job=nightly), slowest_speed=lambda _: 0.5), NOW_S)
    assert isinstance(found, MayWait)
    slow = situation_of(NOW_S, [100.0] * 40, 50.0, replace(CPUS, speed=0.5))
    [planned], _ = plan_starts([found], slow)
    assert decision_of(planned)["runtimeSeconds"] == 3600.0
    assert planned.chosen.run.runtime_s == pytest.approx(7200.0)
    assert found.terms.latest_start_s < NOW_S + 8 * HOUR_S - 7200.0


SMALL = node("small", 16.0, speed=0.5)
LARGE = node("large", 64.0, speed=2.0, gpu=Gpu("m", 8, 50.0, 350.0))
MIXED, PLAIN = mean_zone("A", [SMALL, LARGE], ASSUMED), mean_zone("B", [SMALL], ASSUMED)


@pytest.mark.parametrize(
    ("cores", "gpus", "speeds"),
    [
        pytest.param(16.0, 0.0, [80.0 / (16.0 / 0.5 + 64.0 / 2.0), 0.5], id="any-node"),
        pytest.param(17.0, 0.0, [2.0, 0.0], id="only-large-ones"),
        pytest.param(1.0, 8.0, [2.0, 0.0], id="only-with-gpus"),
        pytest.param(65.0, 0.0, [1.25, 0.5], id="none-yet"),
        pytest.param(1.0, 9.0, [1.25, 0.0], id="no-node-with-so-many-gpus-yet"),
    ],
)
def test_work_runs_as_fast_as_the_nodes_that_can_take_it(
    cores: float, gpus: float, speeds: list[float]
) -> None:
    assert speeds_for((cores, 1.0, gpus), (MIXED, PLAIN)) == pytest.approx(speeds)


def test_without_any_gpus_in_sight_an_autoscaler_may_add_some_anywhere() -> None:
    assert speeds_for((1.0, 1.0, 1.0), (PLAIN,)) == [0.5]


def test_the_pods_of_a_job_find_nodes_one_by_one() -> None:
    one = waiting()
    four = replace(one, work=replace(one.work, cpu_cores=64.0, memory_bytes=4.0, pods=4))
    [planned], _ = plan_starts([four], situation(PLAIN))
    assert planned.zone == "B" and planned.chosen.run.runtime_s == HOUR_S / 0.5


def situation(*zones: Zone) -> Situation:
    """Return zones of 100 g/kWh for an hour and 20 after it."""
    grams = [100.0] * 4 + [20.0] * 92
    return situation_of(NOW_S, grams, grams, *zones)


def test_work_with_gpus_is_planned_and_billed_where_they_are() -> None:
    here = situation(CPUS, GPUS)
    one = waiting(gpus=4.0)
    [planned], _ = plan_starts([one], here)
    assert planned.zone == "B" and not planned.is_now
    estimates = ledger_estimates(planned, here)
    energy_j = (5.0 + 4 * 240.0) * HOUR_S / 2.0  # twice as fast
    assert estimates.planned.energy_j == pytest.approx(energy_j)
    assert estimates.planned.carbon_g == pytest.approx(20.0 * energy_j / 3.6e6)
    assert estimates.run_now.carbon_g == pytest.approx(100.0 * energy_j / 3.6e6)


def test_no_more_is_planned_for_an_hour_than_there_are_gpus() -> None:
    one = waiting(gpus=4.0)
    many = [replace(one, work=replace(one.work, uid=f"{n}", name=f"{n}")) for n in range(6)]
    planned, _ = plan_starts(many, situation(CPUS, replace(GPUS, gpus=9.0, speed=1.0)))
    starts = [each.start_s for each in planned]
    assert max(starts.count(start_s) for start_s in starts) == 2  # 8 of 9 GPUs


def test_the_ledger_bills_a_profiles_watts() -> None:
    constant = profile(work=[{"duration": "1h", "watts": 400}])
    here = situation(CPUS)
    [planned], _ = plan_starts([waiting(profile=constant)], here)
    assert ledger_estimates(planned, here).planned.energy_j == pytest.approx(400.0 * 1.5 * HOUR_S)
