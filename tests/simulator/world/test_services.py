import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greensched_core.errors import BadInput
from greensched_policies.billing.accounting import total_bill
from greensched_simulator.formats.request_trace import RequestLog
from greensched_simulator.policy import policy_named
from greensched_simulator.runs.charges import charge_of
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import bill_of, billed_until_s, simulate
from greensched_simulator.scenario.services import RequestTrace
from greensched_simulator.testing.drawn_power import drawn_watts
from greensched_simulator.testing.small_worlds import (
    free_room,
    in_one_piece,
    make_world,
)
from greensched_simulator.world.request_curve import curve_of, played
from greensched_simulator.world.response_times import Times
from greensched_simulator.world.scenario_loading import Scenario, parse_scenario
from greensched_simulator.world.services import is_replica, replicas_wanted
from greensched_simulator.world.world import World, build_world

HOUR = 3600.0
WEB: dict[str, Any] = {
    "name": "web",
    "requests": {"generator": {"rate_per_s": 40.0, "daily_swing": 0.8, "peak": "12h"}},
    "service_time": {"mean": "500ms"},
    "objective": {"share": 0.95, "within": "4s"},
    "replica": {"cpu_cores": 2, "memory": "1Gi", "places": 4},
    "autoscaler": {"every": "15m", "scale_down_after": "30m"},
}
WHOLE: dict[str, Any] = {
    "name": "told",
    "start": "2023-06-01T00:00:00Z",
    "length": "1d",
    "cluster": {
        "nodes": [
            {"name": "old", "count": 2, "curve_watts": [100 + 10 * k for k in range(11)],
             "speed": 0.5, "cpu_cores": 32, "memory": "64Gi", "zone": "A"},
            {"name": "new", "count": 2, "curve_watts": [100 + 10 * k for k in range(11)],
             "speed": 2.0, "cpu_cores": 32, "memory": "64Gi", "zone": "A"},
        ]
    },
    "grids": {"A": {"carbon": {"shape": "solar"}, "price": {"constant": 90, "unit": "EUR/MWh"}}},
    "workload": {"generator": {"jobs": 50, "cpu_cores": [1, 2]}, "slack": "6h"},
    "services": [WEB],
}  # fmt: skip


def scenario(folder: Path = Path(), **service: Any) -> Scenario:
    return parse_scenario({**WHOLE, "services": [{**WEB, **service}]}, folder)


def wanted(rates: list[float], **autoscaler: Any) -> list[float]:
    """Return the replicas of slots of a minute; one replica answers two a second."""
    rule = {"every": "1m", "least": 0, "head_room": 0.0, "scale_down_after": "0s", **autoscaler}
    service = {
        **WEB,
        "autoscaler": rule,
        "replica": {**WEB["replica"], "places": 1},
        "objective": {"share": 0.95, "within": "2s"},
    }
    fast = {"nodes": WHOLE["cluster"]["nodes"][1:]}  # on the others no request would be in time
    told = parse_scenario({**WHOLE, "cluster": fast, "services": [service]}).services[0]
    found = replicas_wanted(told, np.array(rates), Times(0.5, 1.0, 0.5, 1.0))
    return [float(each) for each in found]


def ran(world: World, policy: str) -> Schedule:
    return simulate(world, policy_named(policy))


def test_the_autoscaler_wants_the_least_for_which_the_objective_held_at_the_rate_before() -> None:
    """Of M/M/1 at 0.5/s exp(-2 (2 - 0.5)) = 5.0 % are late after 2 s, at 0.4/s 4.1 %."""
    assert wanted([0.4, 0.6, 0.0, 0.0]) == [1, 1, 2, 0]


def test_head_room_reckons_with_more_than_came() -> None:
    assert wanted([0.4, 0.4], head_room=0.5) == [2, 2]


def test_replicas_stay_until_nobody_has_wanted_them_for_a_while() -> None:
    assert wanted([0.6, 0.0, 0.0, 0.0, 0.0], scale_down_after="2m") == [2, 2, 2, 2, 0]


def test_there_are_never_fewer_than_the_least_nor_more_than_the_most() -> None:
    assert wanted([0.0, 50.0, 50.0], least=1, most=3) == [1, 1, 3]


def test_a_replicas_life_is_a_row_between_the_jobs() -> None:
    world = build_world(scenario())
    (service,) = world.services
    jobs, rows = world.jobs, service.rows
    assert (np.diff(jobs.arrival_s) >= 0).all()
    assert np.flatnonzero(is_replica(jobs)).tolist() == rows.tolist()
    assert is_replica(jobs).sum() + 50 == jobs.arrival_s.size == len(set(world.job_names))
    assert {world.job_names[row].rpartition("-")[0].rpartition("-")[0] for row in rows} == {"web"}
    middle_s = (service.curve.begins_s[:-1] + service.curve.begins_s[1:]) / 2
    alive = (jobs.arrival_s[rows] <= middle_s[:, None]) & (
        middle_s[:, None] < jobs.leaves_at_s[rows]
    )
    assert alive.sum(axis=1).tolist() == service.wanted.tolist()
    assert service.wanted.max() > service.wanted.min()
    assert np.isinf(jobs.deadline_s[rows]).all()
    assert np.isinf(jobs.save_every_s[rows]).all()


def test_services_change_nothing_of_the_jobs_beside_them() -> None:
    alone = build_world(parse_scenario({**WHOLE, "services": []}))
    world = build_world(scenario())
    own = ~is_replica(world.jobs)
    for with_services, without in zip(world.jobs, alone.jobs, strict=True):
        assert with_services[own].tolist() == without.tolist()


def test_the_same_seed_gives_the_same_requests_and_another_seed_others() -> None:
    first, again, other = (build_world(scenario(), seed).services[0].curve for seed in (1, 1, 2))
    assert first.requests.tobytes() == again.requests.tobytes()
    assert first.requests.tobytes() != other.requests.tobytes()


def test_requests_made_up_come_at_the_mean_rate_most_at_the_peak() -> None:
    told = scenario()
    curve = curve_of(told.services[0], told.start_s, told.length_s, 1)
    assert curve.requests.sum() == pytest.approx(40 * 24 * HOUR, rel=0.01)
    rate = curve.rate_per_s
    assert rate[46:50].mean() == pytest.approx(40 * 1.8, rel=0.02)
    assert rate[:2].mean() == pytest.approx(40 * 0.2, rel=0.05)


def test_a_log_is_played_stretched_multiplied_and_again() -> None:
    log = RequestLog(np.array([0.0, 1.0, 2.0]), np.zeros(0), np.zeros(0), ())  # for 3 s
    trace = RequestTrace.model_construct(rate_factor=10.0, stretch=2.0, repeat=2)
    # At 0, 2, 4 of 6 s, and again; then silence. Each stands for 2 · 10.
    assert played(log, trace, np.arange(0.0, 15.0, 2.0)).tolist() == [20.0] * 6 + [0.0]


@pytest.mark.parametrize("policy", ["run-now+first-fit", "run-now+first-fit+cap-60"])
@pytest.mark.parametrize("speed", [0.5, 1.0, 2.0])
def test_a_replica_lives_for_its_time_however_fast_its_node_is(policy: str, speed: float) -> None:
    rows = [{"runtime_s": HOUR, "leaves_at_s": HOUR}, {"runtime_s": HOUR}]
    schedule = ran(make_world(rows, [{"speed": speed}]), policy)
    assert schedule.end_s[0] == HOUR
    assert schedule.end_s[1] >= HOUR / speed


def test_a_replica_that_queues_leaves_when_its_time_is_over_all_the_same() -> None:
    full = {"cpu_cores": 10.0}
    rows = [
        {**full, "runtime_s": HOUR},
        {**full, "arrival_s": 60.0, "runtime_s": 2 * HOUR, "leaves_at_s": 2 * HOUR + 60.0},
        {**full, "arrival_s": 120.0, "runtime_s": 600.0, "leaves_at_s": 720.0},
        {**full, "arrival_s": 180.0, "runtime_s": HOUR},
    ]
    schedule = ran(make_world(rows, length_s=4 * HOUR), "run-now+first-fit")
    assert schedule.start_s.tolist() == [0.0, HOUR, 2 * HOUR + 60, 2 * HOUR + 60]
    assert schedule.end_s.tolist() == [HOUR, 2 * HOUR + 60, 2 * HOUR + 60, 3 * HOUR + 60]


@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(st.floats(0.0, 3.0), st.floats(0.05, 2.0), st.integers(1, 10), st.booleans()),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from([
        "run-now+first-fit", "carbon-time+spread+easy", "run-now+cap-60",
        "run-now+bin-pack+sleep-at-once",
    ]),
)  # fmt: skip
def test_replicas_leave_on_time_and_all_that_is_drawn_is_billed(
    rows: list[tuple[float, float, int, bool]], policy: str
) -> None:
    """Each row arrives and lasts so many hours, asks for cores, and is a replica or a job."""
    told = [
        {"arrival_s": at * HOUR, "runtime_s": lasts * HOUR, "cpu_cores": float(cores),
         "leaves_at_s": (at + lasts) * HOUR if is_web else math.inf}
        for at, lasts, cores, is_web in sorted(rows)
    ]  # fmt: skip
    sleepy = {"sleep_w": 20.0, "wake_s": 600.0, "wake_w": 150.0}
    world = make_world(told, [sleepy, {**sleepy, "speed": 2.0}])
    schedule = ran(world, policy)
    late = np.maximum(schedule.start_s, world.jobs.leaves_at_s)
    is_web = is_replica(world.jobs)
    assert schedule.end_s[is_web].tolist() == late[is_web].tolist()
    lasted_s = (schedule.end_s - schedule.start_s)[~is_web]
    fastest_s = world.jobs.runtime_s[~is_web] / 2.0
    assert (lasted_s >= fastest_s * (1 - 1e-9)).all()
    until_s = billed_until_s(world, schedule)
    changes_s = np.unique(
        np.concatenate([[0.0, until_s], schedule.run_segments.start_s, schedule.run_segments.end_s,
                        *schedule.sleeps[1:4], schedule.caps.from_s])
    )  # fmt: skip
    changes_s = changes_s[changes_s <= until_s]
    drawn_j = 0.0
    for begin_s, end_s in pairwise(changes_s.tolist()):
        assert (free_room(world, schedule, begin_s) >= -1e-6).all()
        drawn_j += float(drawn_watts(world, schedule, begin_s).sum()) * (end_s - begin_s)
    bill = total_bill(bill_of(world, schedule, until_s))
    billed_j = bill.energy_active_j + bill.energy_idle_j + bill.energy_sleep_j + bill.energy_wake_j
    assert billed_j == pytest.approx(drawn_j, rel=1e-9)


def test_a_replica_that_never_ran_is_charged_more_than_it_could_have_taken() -> None:
    """On a node of speed 2 it would have drawn 10 W for the whole hour."""
    rows = [{"runtime_s": HOUR, "leaves_at_s": HOUR}]
    never = in_one_piece(np.array([math.nan]), np.array([math.nan]), np.array([-1]))
    assert charge_of(make_world(rows, [{"speed": 2.0}]), never, HOUR).energy_j == 20 * HOUR
    assert charge_of(make_world(rows, [{"speed": 0.5}]), never, HOUR).energy_j == 40 * HOUR


@pytest.mark.parametrize(
    ("service", "reason"),
    [
        pytest.param(
            {"replica": {**WEB["replica"], "cpu_cores": 64}},
            "service web: a replica requests 64 cores, 1 GiB and 0 GPUs, which no node has",
            id="too-large",
        ),
        pytest.param(
            {"objective": {"share": 0.99, "within": "1s"}},
            r"on a node of speed 0.5, even requests that do not wait .* in 36.8 % of all cases, "
            r"but the objective allows 1 %: give more time",
            id="out-of-reach",
        ),
    ],
)  # fmt: skip
def test_a_service_that_cannot_be_is_refused(service: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadInput, match=reason):
        build_world(scenario(**service))


@pytest.mark.parametrize(
    ("service", "reason"),
    [
        pytest.param({"requests": {}}, r"services\[0\].requests: give either trace", id="neither"),
        pytest.param({"service_time": None}, r"services\[0\]: give either service_time", id="time"),
        pytest.param(
            {"autoscaler": {"least": 5, "most": 4}}, "autoscaler.least: is greater than", id="least"
        ),
        pytest.param(
            {"objective": {"within": "2s", "of": "first-token"}},
            "objective.of: the first token's time needs `tokens` or `model`",
            id="first-token",
        ),
        pytest.param(
            {"service_time": None, "tokens": {"prompt_per_s": 1.0, "generated_per_s": 1.0}},
            "tokens: needs requests' tokens: give requests.trace",
            id="tokens",
        ),
        pytest.param(
            {"requests": {"trace": {"file": "log.csv"}}},
            "trace.file: log.csv has requests for 30s, but the scenario lasts 1d: give repeat: "
            "2880, or lengthen it",
            id="short",
        ),
        pytest.param(
            {"requests": {"trace": {"file": "bad.csv"}}}, "row 3: arrival_s is -1", id="faulty"
        ),
        pytest.param(
            {"requests": {"trace": {"file": "log.csv", "repeat": 3000}}, "service_time": None,
             "tokens": {"prompt_per_s": 1.0, "generated_per_s": 1.0}},
            "trace.file: has no tokens",
            id="no-tokens",
        ),
        pytest.param({"objectiv": 1}, "objectiv: is not known here", id="unknown"),
    ],
)  # fmt: skip
def test_a_fault_is_reported_with_its_place(
    tmp_path: Path, service: dict[str, Any], reason: str
) -> None:
    (tmp_path / "log.csv").write_text("arrival_s\n0\n10\n20\n")
    (tmp_path / "bad.csv").write_text("arrival_s\n0\n-1\n20\n")
    with pytest.raises(BadInput, match=reason):
        scenario(tmp_path, **service)


def test_two_services_of_one_name_are_refused() -> None:
    with pytest.raises(BadInput, match="'web' names another service already"):
        parse_scenario({**WHOLE, "services": [WEB, WEB]})


def test_caps_of_package_power_do_not_see_requests_and_are_refused() -> None:
    assumed = {"assumptions": {"cpu_caps": "package-power"}}
    assert parse_scenario({**WHOLE, **assumed, "services": []})
    reason = "assumptions.cpu_caps: package-power cannot be combined with services"
    with pytest.raises(BadInput, match=reason):
        parse_scenario({**WHOLE, **assumed})


def test_tokens_tell_what_a_request_takes_and_when_its_first_token_comes(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(
        "arrival_s,prompt_tokens,generated_tokens\n0,100,20\n10,300,20\n"
    )
    service = {
        "requests": {"trace": {"file": "log.csv", "repeat": 10_000}},
        "service_time": None,
        "tokens": {"prompt_per_s": 1000.0, "generated_per_s": 50.0},
        "objective": {"within": "2s", "of": "first-token"},
    }
    (found,) = build_world(scenario(tmp_path, **service)).services
    # 0.1 and 0.3 s for the prompts, and 0.4 s for the answers.
    assert found.times == pytest.approx((0.6, 0.01 / 0.36, 0.2, 0.01 / 0.04))


def test_a_cap_that_keeps_deadlines_keeps_a_replicas_node_at_full_speed() -> None:
    rows = [{"runtime_s": HOUR, "leaves_at_s": HOUR, "deadline_s": 9 * HOUR}, {"deadline_s": 9e4}]
    nodes = [{"cpu_capacity": 1.0}, {"cpu_capacity": 1.0}]
    schedule = ran(make_world(rows, nodes), "run-now+first-fit+cap-frugal")
    assert set(schedule.caps.node.tolist()) == {1}


def test_jobs_that_wait_for_others_wait_for_the_same_ones_beside_services() -> None:
    workload = {"generator": {"jobs": 60, "stages": [3], "cpu_cores": [1]}}
    both: tuple[Any, ...] = ([], WHOLE["services"])
    alone, beside = (
        build_world(parse_scenario({**WHOLE, "workload": workload, "services": services}))
        for services in both
    )

    def waits(world: World) -> list[tuple[str, str]]:
        tied, names = world.precedence, world.job_names
        return [
            (names[child], names[job])
            for job in range(len(names))
            for child in tied.child[tied.first_child[job] : tied.first_child[job + 1]]
        ]

    assert len(waits(alone)) == 40
    assert waits(beside) == waits(alone)
    waiting = [
        name
        for name, parents in zip(beside.job_names, beside.precedence.parents, strict=True)
        if parents
    ]
    assert waiting == [child for child, _ in waits(alone)]
