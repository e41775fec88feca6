"""Who is asked what in worlds of gangs, of jobs that wait for others, and of jobs with pauses."""

from typing import Any

from greensched_simulator.environments.single import GreenSchedEnv
from greensched_simulator.testing import make_world
from greensched_simulator.world import World

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
    assert env.schedule().stretches.node.tolist() == [1, 1, 0]
    assert set(env.schedule().stretches.start_s) == {0.0}


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


def test_rules_plan_who_may_be_suspended_and_agents_say_where_each_stretch_runs() -> None:
    grid = [(hour * HOUR, 500.0 - 400.0 * (hour % 2), 50.0) for hour in range(9)]
    pausing = {"runtime_s": 2 * HOUR, "deadline_s": 8 * HOUR, "save_every_s": 0.0}
    world = make_world([pausing, {"deadline_s": 8 * HOUR}], [{}, {}], [grid])
    policy = "lowest-window+pause-freely"
    assert [job for job, _ in asked(world, policy, "when", [0])[0]] == [1]
    questions, env = asked(world, policy, "where", [0, 1, 1])
    assert [job for job, _ in questions] in ([0, 1, 0], [1, 0, 0])
    told = env.schedule().stretches
    assert told.node[told.job == 0].tolist() == [0 if questions[0][0] == 0 else 1, 1]
