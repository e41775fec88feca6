"""Gang scheduling: a job of several workers starts when all of them find room at once.

Ousterhout, "Scheduling Techniques for Concurrent Systems", ICDCS 1982. In Kubernetes, Kueue and the
coscheduling plugin provide it.
"""

from greensched_policies.compiling.compiled import borrowing, fast, inlined
from greensched_simulator.engine.execution.running import give_room, start, take_room
from greensched_simulator.engine.execution.workers import new_worker, scales, workers_of
from greensched_simulator.engine.run import Run
from greensched_simulator.engine.state.choices import NOWHERE, choose_node
from greensched_simulator.engine.state.observing import NewWorker
from greensched_simulator.engine.state.progress import WANTED
from greensched_simulator.engine.state.recorded import NODE


@borrowing
def start_gang(job: int, now_s: float, run: Run) -> bool:
    """Start a job on the best nodes with room, worker by worker; return False if one finds none."""
    first = place_all(job, now_s, run)
    if first == NOWHERE:
        return False
    start(job, first, now_s, run)
    return True


@borrowing
def place_all(job: int, now_s: float, run: Run) -> int:
    """Choose and record a node for each worker, and return the first worker's.

    Each worker sees the room that those before it leave; the cluster is unchanged afterwards.
    Return NOWHERE if a worker finds no node; an elastic job accepts as many workers as find one.
    """
    recorded, may_scale = run.recorded, scales(job, run.jobs, run.terms)
    if may_scale:
        recorded.workers[job] = int(recorded.progress[WANTED, job])
    first = best_node_for(new_worker(job, now_s, run), run)
    if first == NOWHERE and may_scale:
        recorded.workers[job] = 1
    if first == NOWHERE or workers_of(job, recorded) == 1:
        return first
    return _place_others(job, first, now_s, run)


@inlined
def best_node_for(worker: NewWorker, run: Run) -> int:
    """Return the best node with room for a worker, NOWHERE if there is none."""
    return choose_node(run.cluster, run.grid, run.terms, run.rules, worker, run.nodes_memory)


@fast
def _place_others(job: int, first: int, now_s: float, run: Run) -> int:
    """Choose the nodes of all workers but the first, which gets node `first`; see `place_all`."""
    recorded, worker = run.recorded, new_worker(job, now_s, run)
    others = recorded.others[NODE, recorded.first_other[job] :]
    gpus = [take_room(job, first, run)]
    while len(gpus) < workers_of(job, recorded):
        node = best_node_for(worker, run)
        if node == NOWHERE:
            break
        others[len(gpus) - 1] = node
        gpus.append(take_room(job, node, run))
    for place in range(len(gpus)):
        give_room(job, first if place == 0 else others[place - 1], gpus[place], run)
    if scales(job, run.jobs, run.terms):
        recorded.workers[job] = len(gpus)
    return first if len(gpus) == workers_of(job, recorded) else NOWHERE
