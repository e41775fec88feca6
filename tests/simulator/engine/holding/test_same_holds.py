"""What the simulator holds by a GreenPolicy is what the operator holds: the same starts."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest

from greensched_operator.holding.holding import HoldTerms
from greensched_operator.holding.judging import terms_of
from greensched_operator.objects.green_policy import GreenPolicy, Mode, parse
from greensched_simulator.policy import policy_named
from greensched_simulator.runs.hold_terms import hold_table
from greensched_simulator.runs.run_inputs import estimates_in
from greensched_simulator.runs.simulation import simulate
from greensched_simulator.testing.jobs_as_work import hold_rules, waiting_job
from greensched_simulator.testing.operator_beside import OperatorBeside, decided_by_operator
from greensched_simulator.testing.random_worlds import random_world
from greensched_simulator.testing.small_worlds import make_world
from greensched_simulator.world.services import is_replica
from greensched_simulator.world.world import World
from tests.fuzzing import IS_FUZZING

pytestmark = pytest.mark.engine

SIGNALS = (
    "carbon_g_per_kwh", "price_per_mwh", "forecast_carbon_g_per_kwh", "forecast_price_per_mwh",
)  # fmt: skip
SEEDS = [seed for seed in range(30) if random_world(seed).nodes.zone.size > 1][:12]
POLICIES: dict[str, dict[str, Any]] = {
    "delayed": {"defaultDelay": "5h"},
    "only-deadlines": {"startDelay": "10m", "onTimeTargetPercent": 90},
    "queues": {"defaultDelay": "5h", "waitForRoom": False},
    "few-held": {"defaultDelay": "5h", "maxHeldSharePercent": 10},
    "no-limit": {"defaultDelay": "5h", "carbonLimit": "none", "weights": {"carbon": 0}},
    "quiet": {"defaultDelay": "5h", "quietHours": [{"from": "01:10", "to": "03:40"}]},
    "quiet-until-winter": {
        "defaultDelay": "5h",
        "quietHours": [
            {"from": "06:00", "to": "23:00", "timeZone": "Europe/Berlin"},
            {"from": "21:00", "to": "04:00"},
        ],
    },
    "thresholds": {"defaultDelay": "4h", "whenPolicy": "clean-threshold", "leastSavingPercent": 0},
    "carbon-budget": {"defaultDelay": "5h", "budget": {"period": "Day", "carbonKg": 0.2}},
    "energy-budget": {
        "defaultDelay": "9h",
        "maxHeldSharePercent": 20,
        "waitForRoom": False,
        "budget": {"period": "Week", "energyKwh": 0.4},
    },
}


def cases_of(seeds: Sequence[int], names: Iterable[str]) -> list[tuple[int, str]]:
    """Return each world with each policy by `make fuzz`, else half of them: it takes a while."""
    return [
        (seed, name)
        for place, seed in enumerate(seeds)
        for number, name in enumerate(names)
        if IS_FUZZING or (place + number) % 2 == 0
    ]


def drawn(seed: int, cores_of_a_node: float = 16.0) -> World:
    """Return a world whose nodes never sleep; each takes all jobs, and is as fast as its zone.

    All work on GPUs draws the share that is assumed, which is all that an operator knows of it.

    Grids and runtimes are whole numbers, so that nothing but an error could tell two starts apart.
    """
    world = random_world(seed, sleeps=False)
    grids, nodes, jobs = world.grids, world.nodes, world.jobs
    whole = {name: np.rint(getattr(grids, name)) for name in SIGNALS}
    cores, speed = np.full(nodes.zone.size, cores_of_a_node), np.array([2.0, 0.5])[nodes.zone]
    return world._replace(
        grids=grids._replace(pue_relative=np.zeros(0), **whole),
        nodes=nodes._replace(cpu_capacity=cores, speed=speed),
        jobs=jobs._replace(
            estimate_s=np.rint(jobs.estimate_s),
            gpu_ratio=np.full(jobs.gpus.size, world.gpu_ratio),
        ),
    )


def test_the_operator_beside_reads_parts_of_seconds() -> None:
    world, policy = random_world(0), GreenPolicy(mode=Mode.ENFORCE)
    estimate_s = world.jobs.estimate_s + 0.25
    world = world._replace(jobs=world.jobs._replace(estimate_s=estimate_s))
    read = [terms_of(waiting_job(world, job), hold_rules(world, policy))[0] for job in range(8)]
    held = {job: terms for job, terms in enumerate(read) if isinstance(terms, HoldTerms)}
    assert held
    for job, terms in held.items():
        assert terms.runtime_s == estimate_s[job]
        deadline_s = world.start_s + world.jobs.deadline_s[job]
        assert terms.deadline_s == pytest.approx(deadline_s, abs=1e-6)


@pytest.mark.parametrize(("seed", "name"), cases_of(SEEDS, POLICIES))
def test_the_simulator_releases_each_job_when_the_operator_does(seed: int, name: str) -> None:
    manifest = {"metadata": {"name": "p"}, "spec": {"mode": "enforce", **POLICIES[name]}}
    policy = parse(manifest)
    assert policy.faults == ()
    world = drawn(seed)._replace(green_policy=policy)
    assert_same_releases(world, policy)


def assert_same_releases(world: World, policy: GreenPolicy) -> OperatorBeside:
    """Assert that both release each job at the same time, and return the operator."""
    schedule = simulate(world, policy_named("green-policy"))
    operator = decided_by_operator(world, policy, schedule)
    expected = [operator.starts_s[job] for job in range(world.jobs.arrival_s.size)]
    assert schedule.planned_s == pytest.approx(np.array(expected), abs=1e-3)
    return operator


def test_both_keep_as_much_room_in_clusters_that_were_busy() -> None:
    policy = parse({"metadata": {"name": "p"}, "spec": {"mode": "enforce", "defaultDelay": "8h"}})
    busiest = [assert_same_releases(crowded(seed, policy), policy).busiest_share for seed in SEEDS]
    assert sum(share > 0.75 for share in busiest) > 3


def crowded(seed: int, policy: GreenPolicy) -> World:
    """Return a world whose jobs arrive in a third of the time on nodes of half the size."""
    world = drawn(seed, 8.0)
    jobs = world.jobs._replace(arrival_s=world.jobs.arrival_s / 3.0)
    return world._replace(jobs=jobs, green_policy=policy)


@pytest.mark.parametrize("seed", SEEDS)
def test_both_count_each_worker_of_a_gang_where_it_runs(seed: int) -> None:
    policy = parse({"metadata": {"name": "p"}, "spec": {"mode": "enforce", "defaultDelay": "8h"}})
    assert_same_releases(with_gangs(seed, policy), policy)


def test_gangs_run_in_several_zones() -> None:
    policy = parse({"metadata": {"name": "p"}, "spec": {"mode": "enforce", "defaultDelay": "8h"}})
    spread = 0
    for world in (with_gangs(seed, policy) for seed in SEEDS):
        segments = simulate(world, policy_named("green-policy")).run_segments
        zones = world.nodes.zone[segments.node]
        spread += sum(np.unique(zones[segments.job == job]).size > 1 for job in segments.job)
    assert spread > 20


def with_gangs(seed: int, policy: GreenPolicy) -> World:
    """Return a crowded world in which two jobs of three are gangs of two or three workers."""
    world = crowded(seed, policy)
    drawn_workers = np.random.default_rng(seed).integers(1, 4, world.jobs.arrival_s.size)
    workers = np.where(is_replica(world.jobs), 1.0, drawn_workers)
    return world._replace(jobs=world.jobs._replace(workers=workers))


@pytest.mark.parametrize(("seed", "cores", "of_a_node", "spec"), [
    pytest.param(52, (0.3, 0.6, 1.2, 2.4), 8.0, {}, id="room"),
    pytest.param(71, (0.3, 0.6, 1.2, 2.4), 8.0, {}, id="room-of-another-day"),
    pytest.param(33, (0.1, 0.2, 0.3, 0.6), 10.0, {"maxHeldSharePercent": 10}, id="held-share"),
])  # fmt: skip
def test_both_add_up_tenths_of_cores_alike(
    seed: int, cores: tuple[float, ...], of_a_node: float, spec: dict[str, Any]
) -> None:
    """The engine adds and removes cores in one sum, the operator sums them anew."""
    manifest = {"metadata": {"name": "p"}, "spec": {"mode": "enforce", "defaultDelay": "8h"} | spec}
    policy, world = parse(manifest), drawn(seed, of_a_node)
    jobs, count = world.jobs, world.jobs.arrival_s.size
    jobs = jobs._replace(
        arrival_s=jobs.arrival_s / (2.0 if spec else 3.0),
        cpu_cores=np.random.default_rng(seed).choice(cores, count),
        memory_bytes=np.full(count, 1e6), gpus=np.zeros(count),
    )  # fmt: skip
    assert_same_releases(world._replace(jobs=jobs, green_policy=policy), policy)


@pytest.mark.parametrize("seed", SEEDS)
def test_both_plan_by_the_watts_of_the_kind_of_work(seed: int) -> None:
    """The operator reads them off a JobPowerProfile, which has the same watts on all nodes."""
    policy = parse({"metadata": {"name": "p"}, "spec": {"mode": "enforce", "defaultDelay": "8h"}})
    assert_same_releases(with_kinds(seed, policy), policy)


def test_both_reckon_with_the_watts_of_the_kind_of_work() -> None:
    policy = parse({"metadata": {"name": "p"}, "spec": {"mode": "enforce", "defaultDelay": "8h"}})
    compared = set[float]()
    for world in (with_kinds(seed, policy) for seed in SEEDS):
        power_w = hold_table(world, policy, estimates_in(world, np.zeros((6, 0)))).power_w
        schedule = simulate(world, policy_named("green-policy"))
        operator = OperatorBeside(world, policy, schedule, {}, {}, {})
        for job in np.flatnonzero(world.jobs.gpus).tolist():
            if (waiting := operator.may_wait(job)) is not None:
                assert power_w[job] == pytest.approx(operator.situation(0.0).watts(waiting))
                compared.add(float(world.jobs.gpu_ratio[job]))
    assert compared == {0.1, 1.0}


@pytest.mark.parametrize(("gpu_ratio", "hour"), [
    pytest.param(0.0, 4.0, id="light-work-waits-for-the-cleanest-hour"),
    pytest.param(1.0, 2.0, id="hungry-work-for-the-zone-whose-GPUs-draw-less"),
])  # fmt: skip
def test_when_work_is_released_depends_on_its_kind(gpu_ratio: float, hour: float) -> None:
    """Zone A is cleanest in hour 4, zone B in hour 2; a GPU of A draws ten times as much."""
    grids = [
        [(3600.0 * at, 100.0 if at == cleanest else 600.0, 50.0) for at in range(12)]
        for cleanest in (4, -1)
    ]
    grids[1][2] = (7200.0, 200.0, 50.0)
    nodes = [
        {"gpu_capacity": 2.0, "gpu_idle_w": 50.0, "gpu_peak_w": peak_w, "zone": zone}
        for zone, peak_w in enumerate((650.0, 110.0))
    ]
    job = {"gpus": 1.0, "gpu_ratio": gpu_ratio, "runtime_s": 3000.0}
    spec = {"mode": "enforce", "defaultDelay": "8h", "weights": {"cost": 0, "performance": 0}}
    policy = parse({"metadata": {"name": "p"}, "spec": spec})
    world = make_world([job], nodes, grids)._replace(green_policy=policy)
    (planned_s,) = simulate(world, policy_named("green-policy")).planned_s.tolist()
    assert hour <= planned_s / 3600.0 < hour + 0.2


def with_kinds(seed: int, policy: GreenPolicy) -> World:
    """Return a world of jobs of several kinds, on nodes that draw the same but for their PUE."""
    world = drawn(seed)
    nodes, count = world.nodes, world.nodes.zone.size
    alike = nodes._replace(
        curve_class=np.zeros(count), gpu_peak_w=np.full(count, 400.0),
        pue=np.array([1.0, 1.3])[nodes.zone],
    )  # fmt: skip
    gpu_ratio = np.random.default_rng(seed).choice([0.1, 1.0], world.jobs.gpus.size)
    return world._replace(
        nodes=alike, jobs=world.jobs._replace(gpu_ratio=gpu_ratio), green_policy=policy
    )


def test_jobs_are_held_by_every_policy_and_a_small_share_holds_fewer() -> None:
    held = dict.fromkeys(POLICIES, 0)
    for name, spec in POLICIES.items():
        policy = parse({"metadata": {"name": "p"}, "spec": {"mode": "enforce", **spec}})
        for world in map(drawn, SEEDS):
            schedule = simulate(world._replace(green_policy=policy), policy_named("green-policy"))
            held[name] += int((schedule.planned_s > world.jobs.arrival_s).sum())
    assert min(held.values()) > 10
    assert held["few-held"] < held["delayed"]
