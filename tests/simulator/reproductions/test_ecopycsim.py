"""EcoPyCSim's bill and its rejections by hand, and its published figures, which need no data."""

import numpy as np
import pytest

from greensched_simulator.reproductions import ecopycsim
from greensched_simulator.reproductions.ecopycsim import Farms, Job
from greensched_simulator.reproductions.tables import NOT_PUBLISHED, ComparedLine

# Of tasks of 0.125 on server 0. One: .0225 is .02, times .62 is .0124, which is .01; .035 more is
# .045, which is .05; times 5.91. Two: .045 is .04, times .62 is .0248, which is .02; .035 more is
# .055, which is .06. What of a half is up and what down, the floats decide, as they do there.
ONE_TASK_PRICE, TWO_TASKS_PRICE = 0.3, 0.35


def job(arrival_s: float, runtime_s: float, *children: tuple[int, ...]) -> Job:
    """Return a job of tasks alike, each with the tasks that wait for it."""
    return Job(arrival_s, (0.125,) * len(children), (runtime_s,) * len(children), children)


def on_server_0(*jobs: Job) -> ecopycsim.RuleOutcome:
    return ecopycsim.play(list(jobs), ecopycsim.chooser("always server 0", 0))


def test_the_published_figures_come_out_and_work_stands_beside_them() -> None:
    lines = ecopycsim.reproduce(None)
    assert [line for line in lines if not line.is_equal] == []
    assert sum(line.is_published for line in lines) == 4
    ours = {(line.case, line.figure): line.ours for line in lines}
    done = "tasks done, of 2700"
    assert ours["first fit", done] == ours["random", done] == 2700
    assert ours["always server 0", done] < 1000


def test_the_table_gives_300_jobs_and_2700_tasks() -> None:
    requests = ecopycsim.read_requests()
    assert len(requests) == ecopycsim.JOBS
    assert sum(len(cpu) for cpu in requests) == ecopycsim.TASKS
    assert {each for cpu in requests for each in cpu} == set(ecopycsim.CPU_REQUESTS)
    assert all(len(set(cpu)) == 1 for cpu in requests)


def test_only_graphs_and_runtimes_change_with_the_seed() -> None:
    first, again, other = (ecopycsim.make_jobs(seed) for seed in (0, 0, 1))
    assert first == again
    assert [(each.arrival_s, each.cpu) for each in first] == [
        (each.arrival_s, each.cpu) for each in other
    ]
    assert first != other


@pytest.mark.parametrize(
    ("tasks", "edges"), [(1, 0), (2, 1), (3, 3), (5, 5), (6, 12), (40, 80)], ids=str
)
def test_edges_differ_and_lead_to_later_tasks(tasks: int, edges: int) -> None:
    children = ecopycsim.draw_children(tasks, np.random.default_rng(0))
    pairs = [(task, child) for task, each in enumerate(children) for child in each]
    assert len(pairs) == len(set(pairs)) == edges
    assert all(task < child < tasks for task, child in pairs)


@pytest.mark.parametrize(
    ("cpu", "power"),
    [
        pytest.param(0.0, 0.0, id="idle-costs-nothing"),
        pytest.param(0.1125, 0.05, id="one-of-the-smallest-tasks"),
        pytest.param(2.25, 0.18, id="ten-of-the-largest-tasks"),
    ],
)
def test_power_is_rounded_at_every_step(cpu: float, power: float) -> None:
    # .01125 is .01, times .62 is .0062, which is .01, and .035 make .045.
    # .225 is .23, times .62 is .1426, which is .14, and .035 make .175; both floats lie above.
    assert ecopycsim.server_power(cpu, 0.62) == power


@pytest.mark.parametrize(
    ("powers", "price"),
    [
        pytest.param([0.75, 0.75], 8.87, id="1.5-is-low"),  # 1.5 · 5.91 = 8.865
        pytest.param([0.75, 0.76], 12.49, id="above-all-of-it-is-high"),  # 1.51 · 8.27
    ],
)
def test_a_farm_above_the_threshold_pays_more_for_all_it_draws(
    powers: list[float], price: float
) -> None:
    assert ecopycsim.farm_price(powers) == price


def test_a_server_has_room_for_ten_tasks_and_first_fit_takes_the_next() -> None:
    farms = Farms()
    assert [farms.host(0, 0.0125) for _ in range(10)] == list(range(10))
    assert not farms.has_room(0)
    assert ecopycsim.first_fit(farms) == 1
    farms.release(0, 4)
    assert ecopycsim.first_fit(farms) == 0
    assert farms.host(0, 0.0125) == 4


def test_an_empty_farm_costs_nothing_again() -> None:
    farms = Farms()
    machines = [(server, farms.host(server, 0.125)) for server in (0, 7, 99)]
    assert farms.price > 0
    for server, machine in machines:
        farms.release(server, machine)
    assert farms.price == 0.0


def test_the_price_after_an_interval_misses_what_ended_with_it() -> None:
    # A chain of two tasks of 4 s: when the second is decided on, nothing runs any more.
    outcome = on_server_0(job(1.0, 4.0, (1,), ()))
    assert outcome.price == pytest.approx(8.0 * ONE_TASK_PRICE)
    assert outcome.price_at_decisions == 0.0
    assert (outcome.tasks_done, outcome.jobs_done) == (2, 1)


def test_the_price_at_a_decision_counts_for_the_interval_before_it() -> None:
    outcome = on_server_0(job(1.0, 4.0, ()), job(3.0, 4.0, ()))
    assert outcome.price_at_decisions == pytest.approx(2.0 * ONE_TASK_PRICE)


def test_a_task_waits_for_all_of_its_parents() -> None:
    # Task 0 runs until 1 s, 1 until 3 s, 2 until 6 s, and only then 3 until 7 s.
    diamond = Job(0.0, (0.125,) * 4, (1.0, 2.0, 5.0, 1.0), ((1, 2), (3,), (3,), ()))
    outcome = on_server_0(diamond)
    assert outcome.tasks_done == 4
    assert outcome.price == pytest.approx(5.0 * ONE_TASK_PRICE + 2.0 * TWO_TASKS_PRICE)


def test_a_rejected_task_takes_all_of_its_job_that_has_not_started_with_it() -> None:
    # Ten machines are taken; of the second job's three tasks none starts, and the third job comes
    # when there is room again.
    full = job(0.0, 5.0, *[()] * 10)
    outcome = on_server_0(full, job(1.0, 5.0, (2,), (), ()), job(9.0, 5.0, ()))
    assert (outcome.tasks_done, outcome.jobs_done) == (11, 2)


def test_tasks_that_run_when_their_job_is_rejected_run_to_the_end_for_nothing() -> None:
    # Nine machines are taken: the first task starts, the second is rejected, the third never comes.
    outcome = on_server_0(job(0.0, 5.0, *[()] * 9), job(1.0, 5.0, (2,), (), ()))
    assert (outcome.tasks_done, outcome.jobs_done) == (10, 1)


def test_a_figure_that_nobody_published_is_never_off() -> None:
    line = ComparedLine("case", "figure", NOT_PUBLISHED, 3.0, 0.0)
    assert not line.is_published
    assert line.is_equal
