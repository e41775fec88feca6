"""Jobs of several workers find room for all of them at once, or wait: gang scheduling.

Ousterhout, "Scheduling Techniques for Concurrent Systems", ICDCS 1982; Kubernetes has it by Kueue
and the coscheduling plugin.
"""

from greensched_simulator.arrays.grid_table import GridTable
from greensched_simulator.arrays.heaps import Heap
from greensched_simulator.arrays.jobs import Jobs
from greensched_simulator.compiling.compiled import borrowing, fast
from greensched_simulator.engine.execution.running import give_room, start, take_room
from greensched_simulator.engine.execution.workers import data_of, scales, workers_of, workload_of
from greensched_simulator.engine.state.choices import NOWHERE, Rules, Terms, choose_node
from greensched_simulator.engine.state.cluster import Cluster
from greensched_simulator.engine.state.progress import WANTED
from greensched_simulator.engine.state.recorded import NODE, Recorded
from greensched_simulator.engine.state.starts import Plan


@borrowing
def start_gang(
    job: int,
    now_s: float,
    jobs: Jobs,
    cluster: Cluster,
    recorded: Recorded,
    ends: Heap,
    grid: GridTable,
    plan: Plan,
    terms: Terms,
    rules: Rules,
) -> bool:
    """Start a job on the best nodes with room, chosen worker by worker; False if one finds none."""
    first = place_all(job, now_s, jobs, cluster, recorded, grid, terms, rules)
    if first == NOWHERE:
        return False
    start(job, first, now_s, jobs, cluster, recorded, ends, plan, terms)
    return True


@borrowing
def place_all(
    job: int,
    now_s: float,
    jobs: Jobs,
    cluster: Cluster,
    recorded: Recorded,
    grid: GridTable,
    terms: Terms,
    rules: Rules,
) -> int:
    """Choose a node for each worker, of which the record then tells, and return the first one's.

    Each sees the room that those before it leave; the cluster stays as it was. NOWHERE if one finds
    none; an elastic job does with as many as find some.
    """
    if scales(job, jobs, terms):
        recorded.workers[job] = int(recorded.progress[WANTED, job])
    workload, data = workload_of(job, jobs, recorded, terms), data_of(job, jobs, recorded)
    first = choose_node(cluster, grid, terms, rules, workload, data, now_s)
    if first == NOWHERE and scales(job, jobs, terms):
        recorded.workers[job] = 1
    if first == NOWHERE or workers_of(job, recorded) == 1:
        return first
    return _place_others(job, first, now_s, jobs, cluster, recorded, grid, terms, rules)


@fast
def _place_others(
    job: int,
    first: int,
    now_s: float,
    jobs: Jobs,
    cluster: Cluster,
    recorded: Recorded,
    grid: GridTable,
    terms: Terms,
    rules: Rules,
) -> int:
    """Choose the nodes of all workers but the first one, which has that one; see `place_all`."""
    workload, data = workload_of(job, jobs, recorded, terms), data_of(job, jobs, recorded)
    others = recorded.others[NODE, recorded.first_other[job] :]
    boards = [take_room(job, first, jobs, cluster, terms)]
    while len(boards) < workers_of(job, recorded):
        node = choose_node(cluster, grid, terms, rules, workload, data, now_s)
        if node == NOWHERE:
            break
        others[len(boards) - 1] = node
        boards.append(take_room(job, node, jobs, cluster, terms))
    for worker in range(len(boards)):
        node = first if worker == 0 else others[worker - 1]
        give_room(job, node, boards[worker], jobs, cluster, terms)
    if scales(job, jobs, terms):
        recorded.workers[job] = len(boards)
    return first if len(boards) == workers_of(job, recorded) else NOWHERE
