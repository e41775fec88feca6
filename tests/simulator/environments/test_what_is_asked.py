"""Who is asked what: in gangs, of jobs that wait for others, pause or scale, and in queues."""

from typing import Any

import numpy as np

from greensched_simulator.environments.single import GreenSchedEnv
from greensched_simulator.testing.small_worlds import make_world
from greensched_simulator.world.world import World

HOUR = 3600.0


def asked(
    world: World, policy: str, head: Any, answers: list[int]
) -> tuple[list[tuple[int, int]], GreenSchedEnv]:
    """Answer one question after the other; return of whom each was, among how many candidates."""
    env = GreenSchedEnv([world], policy, head)
    _, told = env.reset(seed=0)
    found = []
    for answer in answers:
        found.append((told["job"], told["candidates"]))
        *_, told = env.step(answer)
    assert told["head"] == "over"
    return found, env


def test_each_worker_of_a_job_is_asked_for_and_sees_what_room_those_before_it_leave() -> None:
    gang = {"workers": 3.0, "cpu_cores": 4.0}  # nodes have ten
    questions, env = asked(make_world([gang], [{}, {}, {}]), "run-now", "where", [1, 1, 0])
    assert questions == [(0, 3), (0, 3), (0, 2)]
    assert env.schedule().run_segments.node.tolist() == [1, 1, 0]
    assert set(env.schedule().run_segments.start_s) == {0.0}


def test_who_finds_no_room_for_all_workers_waits_without_being_asked() -> None:
    jobs = [{"cpu_cores": 8.0}, {"workers": 2.0, "cpu_cores": 8.0, "arrival_s": 60.0}]
    questions, env = asked(make_world(jobs, [{}, {}]), "run-now", "where", [1])
    assert questions == [(0, 2)]
    assert env.schedule().start_s.tolist() == [0.0, HOUR]


def test_what_several_workers_take_is_credited_to_their_job() -> None:
    alone, three = {"cpu_cores": 4.0}, {"cpu_cores": 4.0, "workers": 3.0, "arrival_s": 60.0}
    _, env = asked(make_world([alone, three], [{}, {}, {}]), "run-now", "where", [0, 0, 1, 1])
    one, several = env.credits().tolist()
    assert abs(several - 3.0 * one) < 1e-9


def test_who_waits_for_others_is_asked_once_they_have_ended() -> None:
    jobs = [{"deadline_s": 4 * HOUR}, {"deadline_s": 4 * HOUR}]
    questions, env = asked(make_world(jobs, after={1: [0]}), "run-now", "when", [2, 3])
    assert questions == [(0, 9), (1, 7)]  # it must let the other one end in time, too
    assert env.schedule().start_s.tolist() == [0.5 * HOUR, 2.25 * HOUR]


def test_rules_plan_who_may_be_suspended_and_agents_say_where_each_run_segment_runs() -> None:
    grid = [(hour * HOUR, 500.0 - 400.0 * (hour % 2), 50.0) for hour in range(9)]
    pausing = {"runtime_s": 2 * HOUR, "deadline_s": 8 * HOUR, "save_every_s": 0.0}
    world = make_world([pausing, {"deadline_s": 8 * HOUR}], [{}, {}], [grid])
    policy = "lowest-window+pause-freely"
    assert [job for job, _ in asked(world, policy, "when", [0])[0]] == [1]
    questions, env = asked(world, policy, "where", [0, 1, 1])
    assert [job for job, _ in questions] in ([0, 1, 0], [1, 0, 0])
    told = env.schedule().run_segments
    assert told.node[told.job == 0].tolist() == [0 if questions[0][0] == 0 else 1, 1]


def elastic(nodes: int) -> World:
    """Return a job that is late and thus wants three workers, on nodes with room for one each."""
    late = {"runtime_s": 4 * HOUR, "deadline_s": HOUR, "save_every_s": 0.0, "cpu_cores": 6.0,
            "scaling": 1.0}  # fmt: skip
    return make_world([late], [{}] * nodes, scaling=np.array([[1.0] * 3, [1.0, 2.0, 3.0]]))


def test_an_agent_chooses_a_node_for_each_worker_that_an_elastic_job_is_to_have() -> None:
    questions, env = asked(elastic(4), "carbon-scaler", "where", [3, 0, 1])
    assert questions == [(0, 4), (0, 3), (0, 2)]
    assert env.schedule().run_segments.node.tolist() == [3, 0, 2]
    assert env.schedule().end_s[0] == 4 * HOUR / 3


def test_an_elastic_job_starts_with_those_workers_that_find_room() -> None:
    questions, env = asked(elastic(2), "carbon-scaler", "where", [1])
    assert questions == [(0, 2)]
    assert env.schedule().run_segments.node.tolist() == [1, 0]


def test_rules_scale_elastic_jobs_while_an_agent_decides_when_others_start() -> None:
    world = elastic(2)
    jobs = [{"deadline_s": 4 * HOUR}, {"deadline_s": 4 * HOUR, "save_every_s": 0.0, "scaling": 1.0}]
    world = make_world(jobs, [{}, {}], scaling=world.scaling)
    questions, _ = asked(world, "carbon-scaler", "when", [2])
    assert questions == [(0, 13)]


def test_jobs_that_come_at_once_are_asked_for_in_the_order_of_the_queue() -> None:
    jobs = [{"cpu_cores": 8.0, "runtime_s": 3 * HOUR}, {"cpu_cores": 8.0}, {"cpu_cores": 1.0}]
    questions, env = asked(make_world(jobs, [{}, {}]), "sjf", "where", [1, 0])
    assert questions == [(1, 2), (2, 2)]  # then there is but one node left for the long one
    assert env.schedule().node.tolist() == [0, 1, 0]


def test_who_may_not_pass_is_asked_once_the_first_one_has_started() -> None:
    jobs = [*[{"cpu_cores": 8.0}] * 3, {"cpu_cores": 1.0, "arrival_s": 60.0}]
    questions, env = asked(make_world(jobs, [{}, {}]), "fcfs", "where", [0, 0, 1])
    assert questions == [(0, 2), (2, 2), (3, 2)]
    assert env.schedule().start_s.tolist() == [0.0, 0.0, HOUR, HOUR]


def test_who_passes_the_first_one_sees_only_nodes_that_it_may_take() -> None:
    """The fourth waits for the node that comes free in an hour: it is kept from the fifth."""
    jobs = [{"cpu_cores": 10.0, "runtime_s": 2 * HOUR}, {"cpu_cores": 8.0},
            {"cpu_cores": 7.0, "runtime_s": 5 * HOUR}, {"cpu_cores": 10.0, "arrival_s": 36.0},
            {"arrival_s": 72.0, "runtime_s": 5 * HOUR},
            {"arrival_s": 108.0, "runtime_s": HOUR / 2}]  # fmt: skip
    questions, env = asked(make_world(jobs, [{}, {}, {}]), "easy", "where", [0, 0, 0])
    assert questions == [(0, 3), (1, 2), (5, 2)]
    assert env.schedule().node.tolist() == [0, 1, 2, 1, 2, 1]
    assert env.schedule().start_s[3] == HOUR


def test_rules_place_several_workers_that_pass_the_first_one() -> None:
    """Whether they end in time shows only when all have their nodes."""
    jobs = [{"cpu_cores": 8.0}, {"cpu_cores": 7.0, "runtime_s": 5 * HOUR},
            {"cpu_cores": 10.0, "arrival_s": 36.0},
            {"workers": 2.0, "arrival_s": 72.0, "runtime_s": HOUR / 2}]  # fmt: skip
    questions, env = asked(make_world(jobs, [{}, {}]), "easy", "where", [0])
    assert questions == [(0, 2)]
    assert env.schedule().start_s.tolist() == [0.0, 0.0, HOUR, 72.0]


def test_round_robin_goes_on_behind_the_node_that_an_agent_has_chosen() -> None:
    jobs = [{"arrival_s": 60.0 * place} for place in range(3)]
    questions, env = asked(make_world(jobs, [{}, {}, {}]), "round-robin", "where", [1, -1, -1])
    assert questions == [(0, 3), (1, 3), (2, 3)]
    assert env.schedule().node.tolist() == [1, 2, 0]
