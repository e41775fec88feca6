"""EcoPyCSim's set-up of 300 jobs on ten farms of ten servers, under rules without learning.

Code clementmaxwell/EcoPyCSim. A job is a graph of tasks; a task takes one of the ten virtual
machines of the server that is chosen for it. If none is free, the task and all of its job that has
not started are rejected. Idle servers cost nothing, and a farm's price of power depends on its
power. Time and price have no unit there; seconds are assumed. The trace is not available: a
synthetic table, drawn with one seed, replaces it.
"""

import heapq
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from greensched_simulator.reproductions.tables import NOT_PUBLISHED, ComparedLine

NEEDS_DATA = False
TITLE = "EcoPyCSim, 300 jobs, 10 farms of 10 servers (clementmaxwell/EcoPyCSim)"
JOBS, TASKS = 300, 2700
ROWS_AT_ONCE = 300  # of the table; a job that a block's end cuts counts as two
CPU_REQUESTS = (0.0125, 0.025, 0.0312, 0.0625, 0.125)
RAM_REQUESTS = (
    0.0159,
    0.0318,
    0.0636,
    0.1,
)  # drawn, but a task's machine always has enough
TASKS_A_JOB = (1.9, 0.9)  # of the lognormal distribution
TABLE_SEED, ARRIVAL_SEED = 1, 0
BETWEEN_ARRIVALS_S = 2.0
RUNTIME_MEAN_S, RUNTIME_SD_S = 5.0, 1.6**0.5
RUNS = 6  # each with its own graphs and runtimes, whose seeds are not published

FARMS, SERVERS_A_FARM, MACHINES_A_SERVER = 10, 10, 10
SERVERS = FARMS * SERVERS_A_FARM
MACHINE_CPU = 0.1  # of a taken machine, in addition to its task's request
ALPHA = (0.62, 0.31, 0.44, 0.41, 0.67, 0.64, 0.75, 0.34, 0.51, 0.31)  # of each farm's servers
STATIC_POWER = 0.035
LOW_PRICE, HIGH_PRICE, HIGH_ABOVE_POWER = 5.91, 8.27, 1.5

# From the authors' code on the same table, without the edges that it adds to jobs with more than
# five first tasks and to tasks without edges.
PUBLISHED_PRICE = {"first fit": 935.0, "random": 3171.0, "always server 0": 365.0}
PRICE_TOLERANCE = 0.03  # share
PUBLISHED_DONE = {"first fit": 2700.0}
_NOWHERE = -1


class Job(NamedTuple):
    """A graph of tasks, each with its request and runtime."""

    arrival_s: float
    cpu: tuple[float, ...]
    runtime_s: tuple[float, ...]
    children: tuple[tuple[int, ...], ...]


class RuleOutcome(NamedTuple):
    """The outcome of all jobs under a rule."""

    price_at_decisions: float  # each interval at the price at its end, as in the code
    price: float  # each interval at its own price, to the last departure
    tasks_done: float
    jobs_done: float  # with all of their tasks


class TaskEvent(NamedTuple):
    """A task becomes ready for a server or leaves its machine; ordered by time."""

    at_s: float
    order: int
    job: int
    task: int
    server: int = _NOWHERE
    machine: int = _NOWHERE


class Farms:
    """All servers with their virtual machines, and the current price of their power."""

    def __init__(self) -> None:
        self._taken = [[0.0] * MACHINES_A_SERVER for _ in range(SERVERS)]
        self._power = [0.0] * SERVERS
        self._price = [0.0] * FARMS

    @property
    def price(self) -> float:
        """Return the price that all farms pay per second."""
        return round(sum(self._price), 2)

    def has_room(self, server: int) -> bool:
        """Return whether a machine of the server is free."""
        return 0.0 in self._taken[server]

    def host(self, server: int, cpu: float) -> int:
        """Put a task on the first free machine of a server, and return that machine."""
        machine = self._taken[server].index(0.0)
        self._set(server, machine, MACHINE_CPU + cpu)
        return machine

    def release(self, server: int, machine: int) -> None:
        """Free a machine."""
        self._set(server, machine, 0.0)

    def _set(self, server: int, machine: int, cpu: float) -> None:
        self._taken[server][machine] = cpu
        farm, place = divmod(server, SERVERS_A_FARM)
        self._power[server] = server_power(sum(self._taken[server]), ALPHA[place])
        first = farm * SERVERS_A_FARM
        self._price[farm] = farm_price(self._power[first : first + SERVERS_A_FARM])


Choose = Callable[[Farms], int]


def server_power(cpu: float, alpha: float) -> float:
    """Return the power of a server whose taken machines sum to `cpu`, rounded at every step."""
    utilisation = round(cpu / MACHINES_A_SERVER, 2)
    static = STATIC_POWER if utilisation > 0 else 0.0
    return round(static + round(alpha * utilisation, 2), 2)


def farm_price(powers: list[float]) -> float:
    """Return the price that a farm pays for its servers' power."""
    power = round(sum(powers), 2)
    return round(power * (LOW_PRICE if power <= HIGH_ABOVE_POWER else HIGH_PRICE), 2)


def reproduce(data: Path | None) -> list[ComparedLine]:
    """Return the published figures and ours; `data` is not needed."""
    return [line for name in PUBLISHED_PRICE for line in _lines(name)]


def _lines(name: str) -> Iterator[ComparedLine]:
    runs = [play(make_jobs(seed), chooser(name, seed)) for seed in range(RUNS)]
    found = RuleOutcome(*np.mean(runs, axis=0).tolist())
    price = PUBLISHED_PRICE[name]
    tolerance = PRICE_TOLERANCE * price
    yield ComparedLine(name, "price, as added up there", price, found.price_at_decisions, tolerance)
    yield ComparedLine(name, "price, in full", NOT_PUBLISHED, found.price, 0.0)
    done = PUBLISHED_DONE.get(name, NOT_PUBLISHED)
    yield ComparedLine(name, f"tasks done, of {TASKS}", done, found.tasks_done, 0.0)
    yield ComparedLine(name, f"jobs done, of {JOBS}", NOT_PUBLISHED, found.jobs_done, 0.0)


def chooser(name: str, seed: int) -> Choose:
    """Return the rule that chooses a server for each task, drawing with `seed`."""
    random = np.random.default_rng([seed, 1])
    return {
        "first fit": first_fit,
        "random": lambda farms: int(random.integers(SERVERS)),
        "always server 0": lambda farms: 0,
    }[name]


def first_fit(farms: Farms) -> int:
    """Return the first server with a free machine; server 0 if there is none."""
    return next((server for server in range(SERVERS) if farms.has_room(server)), 0)


def make_jobs(seed: int) -> list[Job]:
    """Return the jobs of the table, with graphs and runtimes drawn with `seed`."""
    random = np.random.default_rng([seed, 0])
    requests = read_requests()
    pauses = np.random.RandomState(ARRIVAL_SEED).exponential(BETWEEN_ARRIVALS_S, len(requests))
    jobs = []
    for arrival_s, cpu in zip(np.cumsum(pauses), requests, strict=True):
        runtime_s = random.normal(RUNTIME_MEAN_S, RUNTIME_SD_S, len(cpu))
        jobs.append(
            Job(
                round(float(arrival_s), 2),
                cpu,
                tuple(round(each, 2) for each in runtime_s.tolist()),
                draw_children(len(cpu), random),
            )
        )
    return jobs


def read_requests() -> list[tuple[float, ...]]:
    """Return the CPU request of each task of each job."""
    random = np.random.default_rng(TABLE_SEED)
    rows: list[tuple[int, float]] = []
    jobs: list[tuple[float, ...]] = []
    made = 0
    while len(jobs) < JOBS:
        while len(rows) < ROWS_AT_ONCE:
            tasks = max(1, int(random.lognormal(*TASKS_A_JOB)))
            cpu = float(random.choice(CPU_REQUESTS))
            random.choice(RAM_REQUESTS)
            rows += [(made, cpu)] * tasks
            made += 1
        block, rows = rows[:ROWS_AT_ONCE], rows[ROWS_AT_ONCE:]
        by_job = itertools.groupby(block, key=lambda row: row[0])
        jobs += [tuple(cpu for _, cpu in group) for _, group in by_job]
    return jobs


def draw_children(tasks: int, random: np.random.Generator) -> tuple[tuple[int, ...], ...]:
    """Return the tasks that wait for each task, by random edges from lower to higher numbers."""
    edges = 2 * tasks if tasks > 5 else tasks if tasks > 2 else tasks - 1
    parent, child = np.triu_indices(tasks, 1)
    children: list[list[int]] = [[] for _ in range(tasks)]
    for edge in random.choice(parent.size, edges, replace=False):
        children[parent[edge]].append(int(child[edge]))
    return tuple(tuple(each) for each in children)


def play(jobs: list[Job], choose: Choose) -> RuleOutcome:
    """Offer each task to the rule when it is ready, and return the outcome of all."""
    return _Run(jobs).play(choose)


class _Run:
    def __init__(self, jobs: list[Job]) -> None:
        self._jobs = jobs
        self._farms = Farms()
        self._left = [len(job.cpu) for job in jobs]
        self._is_rejected = [False] * len(jobs)
        self._awaits = [[0] * len(job.cpu) for job in jobs]
        self._events: list[TaskEvent] = []
        self._order = itertools.count()
        for number, job in enumerate(jobs):
            for child in itertools.chain.from_iterable(job.children):
                self._awaits[number][child] += 1
            for task, parents in enumerate(self._awaits[number]):
                if parents == 0:
                    self._push(job.arrival_s, number, task)

    def play(self, choose: Choose) -> RuleOutcome:
        at_decisions = in_full = 0.0
        now_s = decided_s = self._events[0].at_s
        while self._events:
            event = heapq.heappop(self._events)
            in_full += self._farms.price * (event.at_s - now_s)
            now_s = event.at_s
            if event.server != _NOWHERE:
                self._depart(event)
                continue
            at_decisions += self._farms.price * (now_s - decided_s)
            decided_s = now_s
            if not self._is_rejected[event.job]:
                self._place(event, choose(self._farms))
        done = sum(len(job.cpu) for job in self._jobs) - sum(self._left)
        return RuleOutcome(at_decisions, in_full, done, self._left.count(0))

    def _place(self, event: TaskEvent, server: int) -> None:
        if not self._farms.has_room(server):
            self._is_rejected[event.job] = True
            return
        job = self._jobs[event.job]
        machine = self._farms.host(server, job.cpu[event.task])
        end_s = round(event.at_s + job.runtime_s[event.task], 2)
        self._push(end_s, event.job, event.task, server, machine)

    def _depart(self, event: TaskEvent) -> None:
        self._farms.release(event.server, event.machine)
        self._left[event.job] -= 1
        if self._is_rejected[event.job]:
            return
        awaits = self._awaits[event.job]
        for child in self._jobs[event.job].children[event.task]:
            awaits[child] -= 1
            if awaits[child] == 0:
                self._push(event.at_s, event.job, child)

    def _push(
        self, at_s: float, job: int, task: int, server: int = _NOWHERE, machine: int = _NOWHERE
    ) -> None:
        heapq.heappush(self._events, TaskEvent(at_s, next(self._order), job, task, server, machine))
