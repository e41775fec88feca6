"""What happens to a job on the nodes that an agent has chosen, worker by worker: compiled.

Between two of its workers nothing else happens; each has its room until all start together.
"""

from typing import Any

from greensched_simulator.compiling.compiled import borrowing
from greensched_simulator.engine.execution.running import give_room, start, take_room
from greensched_simulator.engine.execution.workers import (
    boards_of,
    node_of,
    scales,
    wanted_workers,
    workers_of,
)
from greensched_simulator.engine.state.choices import NOWHERE
from greensched_simulator.engine.state.recorded import BOARDS, NODE
from greensched_simulator.environments.scene_parts import DUE, FIRST, WORKER


@borrowing
def want(scene: Any, job: int) -> None:
    """Note how many workers an elastic job is to have, before the first gets a node."""
    if scene.shown.asked[WORKER] == 0 and scales(job, scene.jobs, scene.terms):
        scene.recorded.workers[job] = wanted_workers(job, scene.jobs, scene.recorded, scene.terms)


@borrowing
def give_node(scene: Any, job: int, node: int) -> None:
    """Start a job on a node, or let its next worker have room there, and have the others asked.

    Where the rule stops at the first node that it finds, it goes on behind this one.
    """
    first, cluster = node, scene.cluster
    if scene.terms.nodes_to_score < scene.most_nodes:
        cluster.next_node[0] = (node + 1) % cluster.zone.size
    if workers_of(job, scene.recorded) > 1:
        first = _place_worker(scene, job, node)
        if first == NOWHERE:
            scene.shown.asked[DUE] = job
            return
    start(
        job, first, scene.events.now_s[0], scene.jobs, cluster, scene.recorded,
        scene.events.ends, scene.plan, scene.terms,
    )  # fmt: skip


@borrowing
def _place_worker(scene: Any, job: int, node: int) -> int:
    """Let a job's next worker have room on a node.

    If it is the last, all give it back, and it returns the first one's node; else NOWHERE.
    """
    asked, jobs, recorded = scene.shown.asked, scene.jobs, scene.recorded
    worker = asked[WORKER]
    boards = take_room(job, node, jobs, scene.cluster, scene.terms)
    if worker == 0:
        asked[FIRST], recorded.boards[job] = node, boards
    else:
        place = recorded.first_other[job] + worker - 1
        recorded.others[NODE, place], recorded.others[BOARDS, place] = node, boards
    asked[WORKER] = worker + 1
    if asked[WORKER] < workers_of(job, recorded):
        return NOWHERE
    _give_back(scene, job)
    return int(asked[FIRST])


@borrowing
def _give_back(scene: Any, job: int) -> None:
    """Give back the room that a job's workers have so far: it starts on it, or waits for more."""
    asked, recorded = scene.shown.asked, scene.recorded
    for worker in range(asked[WORKER]):
        node = asked[FIRST] if worker == 0 else node_of(job, worker, recorded)
        boards = boards_of(job, worker, recorded)
        give_room(job, node, boards, scene.jobs, scene.cluster, scene.terms)
    asked[WORKER] = 0


@borrowing
def go_without(scene: Any, job: int) -> bool:
    """Tell whether a job runs although there is no node for its next worker.

    So does an elastic one that has any; what room others have so far is given back.
    """
    found = scene.shown.asked[WORKER]
    _give_back(scene, job)
    if not scales(job, scene.jobs, scene.terms):
        return False
    scene.recorded.workers[job] = max(found, 1)
    if found > 0:
        start(
            job, scene.shown.asked[FIRST], scene.events.now_s[0], scene.jobs, scene.cluster,
            scene.recorded, scene.events.ends, scene.plan, scene.terms,
        )  # fmt: skip
    return bool(found > 0)
