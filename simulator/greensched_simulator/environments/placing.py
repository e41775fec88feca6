"""Places a job on the nodes that an agent has chosen, worker by worker. Compiled.

Nothing else happens between two of its workers. Each holds its room until all start together.
"""

from typing import Any

from greensched_policies.compiling.compiled import borrowing
from greensched_simulator.engine.execution.running import give_room, start, take_room
from greensched_simulator.engine.execution.workers import (
    gpus_of,
    node_of,
    scales,
    wanted_workers,
    workers_of,
)
from greensched_simulator.engine.state.choices import NOWHERE
from greensched_simulator.engine.state.recorded import GPUS, NODE
from greensched_simulator.environments.episode_parts import DUE, FIRST, WORKER


@borrowing
def want(episode: Any, job: int) -> None:
    """Record how many workers an elastic job should get, before the first gets a node."""
    jobs, recorded, terms = episode.run.jobs, episode.run.recorded, episode.run.terms
    if episode.shown.asked[WORKER] == 0 and scales(job, jobs, terms):
        recorded.workers[job] = wanted_workers(job, jobs, recorded, terms)


@borrowing
def give_node(episode: Any, job: int, node: int) -> None:
    """Start a job on a node, or take room there for one worker, and let the agent choose the rest.

    If the rule stops at the first nodes that it finds, its next search begins after this node.
    """
    first, run = node, episode.run
    if run.terms.nodes_to_score < episode.most_nodes:
        run.cluster.next_node[0] = (node + 1) % run.cluster.zone.size
    if workers_of(job, run.recorded) > 1:
        first = _place_worker(episode, job, node)
        if first == NOWHERE:
            episode.shown.asked[DUE] = job
            return
    start(job, first, run.events.now_s[0], run)


@borrowing
def _place_worker(episode: Any, job: int, node: int) -> int:
    """Take room on a node for a job's next worker.

    After the last worker, give all room back and return the first worker's node; else NOWHERE.
    """
    asked, recorded = episode.shown.asked, episode.run.recorded
    worker = asked[WORKER]
    gpus = take_room(job, node, episode.run)
    if worker == 0:
        asked[FIRST], recorded.gpus[job] = node, gpus
    else:
        place = recorded.first_other[job] + worker - 1
        recorded.others[NODE, place], recorded.others[GPUS, place] = node, gpus
    asked[WORKER] = worker + 1
    if asked[WORKER] < workers_of(job, recorded):
        return NOWHERE
    _give_back(episode, job)
    return int(asked[FIRST])


@borrowing
def _give_back(episode: Any, job: int) -> None:
    """Give back the room of a job's workers so far; the job then starts on it, or waits."""
    asked, recorded = episode.shown.asked, episode.run.recorded
    for worker in range(asked[WORKER]):
        node = asked[FIRST] if worker == 0 else node_of(job, worker, recorded)
        give_room(job, node, gpus_of(job, worker, recorded), episode.run)
    asked[WORKER] = 0


@borrowing
def start_with_fewer(episode: Any, job: int) -> bool:
    """Return whether a job starts without a node for its next worker; give its room back.

    An elastic job starts if it has at least one worker; other jobs do not.
    """
    run, found = episode.run, episode.shown.asked[WORKER]
    _give_back(episode, job)
    if not scales(job, run.jobs, run.terms):
        return False
    run.recorded.workers[job] = max(found, 1)
    if found > 0:
        start(job, episode.shown.asked[FIRST], run.events.now_s[0], run)
    return bool(found > 0)
