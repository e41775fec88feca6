"""What happens to a job on the nodes that an agent has chosen, worker by worker: compiled.

Between two of its workers nothing else happens; each has its room until all start together.
"""

from typing import Any

from greensched_simulator.compiling.compiled import borrowing
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
    """Note how many workers an elastic job is to have, before the first gets a node."""
    jobs, recorded, terms = episode.run.jobs, episode.run.recorded, episode.run.terms
    if episode.shown.asked[WORKER] == 0 and scales(job, jobs, terms):
        recorded.workers[job] = wanted_workers(job, jobs, recorded, terms)


@borrowing
def give_node(episode: Any, job: int, node: int) -> None:
    """Start a job on a node, or let its next worker have room there, and have the others asked.

    Where the rule stops at the first node that it finds, it goes on behind this one.
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
    """Let a job's next worker have room on a node.

    If it is the last, all give it back, and it returns the first one's node; else NOWHERE.
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
    """Give back the room that a job's workers have so far: it starts on it, or waits for more."""
    asked, recorded = episode.shown.asked, episode.run.recorded
    for worker in range(asked[WORKER]):
        node = asked[FIRST] if worker == 0 else node_of(job, worker, recorded)
        give_room(job, node, gpus_of(job, worker, recorded), episode.run)
    asked[WORKER] = 0


@borrowing
def start_with_fewer(episode: Any, job: int) -> bool:
    """Tell whether a job runs although there is no node for its next worker.

    So does an elastic one that has any; what room others have so far is given back.
    """
    run, found = episode.run, episode.shown.asked[WORKER]
    _give_back(episode, job)
    if not scales(job, run.jobs, run.terms):
        return False
    run.recorded.workers[job] = max(found, 1)
    if found > 0:
        start(job, episode.shown.asked[FIRST], run.events.now_s[0], run)
    return bool(found > 0)
