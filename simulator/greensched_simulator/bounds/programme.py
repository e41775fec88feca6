"""The linear programme of a bound: each task takes its cheapest choices that have room."""

from collections.abc import Sequence

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from greensched_core.errors import BadInput
from greensched_policies.costs.cost import Floats, Integers
from greensched_simulator.arrays.jobs import JobArrays
from greensched_simulator.bounds.ways import Choices
from greensched_simulator.runs.node_groups import AlikeNodes

_Entries = list[tuple[Integers, Integers, Floats]]  # row, variable, amount


class Programme:
    """Builds the programme task by task, and solves it; a task is a job, or a part of one."""

    def __init__(self, jobs: JobArrays, groups: Sequence[AlikeNodes], slots: int) -> None:
        self._asked = (jobs.cpu_cores, jobs.memory_bytes, jobs.gpus)
        self._groups, self._slots = groups, slots
        self.variables = 0
        self._task = -1
        self._first = 0  # first variable of the task
        self._cost: list[Floats] = []
        self._done: _Entries = []  # work of each task
        self._filled: _Entries = []
        self._alone: _Entries = []  # a job runs on one group at a time

    def begin(self) -> None:
        """Begin a task; later calls add its choices."""
        self._task, self._first = self._task + 1, self.variables

    @property
    def is_possible(self) -> bool:
        """Return whether the task has any choice."""
        return self.variables > self._first

    def leave_undone(self, cost: float) -> None:
        """Add the choice to leave the task undone, for a charge."""
        self._take(np.array([cost]), np.ones(1))

    def add(self, job: int, place: int, choices: Choices, workers: float) -> None:
        """Add the choices of a job of at least `workers` workers on the group at `place`."""
        if choices.slot.size == 0:
            return
        variable = self._take(choices.cost, choices.work)
        place_in, width = np.nonzero(choices.filled)
        slots, shares = choices.slot[place_in] + width, choices.filled[place_in, width]
        for resource, amounts in enumerate(self._asked):
            if amounts[job] > 0:
                amount = shares * amounts[job] * workers / self._groups[place].capacity[resource]
                row = (place * 3 + resource) * self._slots + slots
                self._filled.append((row, variable[place_in], amount))
        if choices.is_alone:
            self._alone.append((self._task * self._slots + slots, variable[place_in], shares))

    def _take(self, cost: Floats, work: Floats) -> Integers:
        """Add and return new variables of the task."""
        variable = np.arange(self.variables, self.variables + cost.size)
        self.variables += cost.size
        self._cost.append(cost)
        self._done.append((np.full(cost.size, self._task), variable, work))
        return variable

    def least(self, name: str) -> float:
        """Return the least cost; raise BadInput if the solver fails."""
        if self.variables == 0:
            return 0.0
        filled, alone = _stacked(self._filled), _stacked(self._alone)
        below, above = _numbered(filled[0]), _numbered(alone[0])
        count = int(below.max(initial=-1)) + 1
        limits = np.concatenate([np.ones(count), _most(above, alone[2])])
        row = np.concatenate([below, count + above])
        variable = np.concatenate([filled[1], alone[1]])
        amount = np.concatenate([filled[2], np.ones(alone[2].size)])
        task, own, work = _stacked(self._done)
        solved = linprog(
            np.concatenate(self._cost),
            A_ub=coo_array((amount, (row, variable)), (limits.size, self.variables)).tocsr(),
            b_ub=limits,
            A_eq=coo_array((work, (task, own)), (self._task + 1, self.variables)).tocsr(),
            b_eq=np.ones(self._task + 1),
            bounds=(0, None),
            method="highs-ipm",  # several times faster here than the simplex
        )
        if not solved.success:
            raise BadInput(f"scenario {name}: no bound was found: {solved.message}")
        return float(solved.fun)


def _stacked(entries: _Entries) -> tuple[Integers, Integers, Floats]:
    nothing = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    rows, variables, amounts = zip(nothing, *entries, strict=True)
    return np.concatenate(rows), np.concatenate(variables), np.concatenate(amounts)


def _numbered(rows: Integers) -> Integers:
    """Return the rows renumbered from 0 without gaps."""
    return np.unique(rows, return_inverse=True)[1].astype(np.int64)


def _most(rows: Integers, shares: Floats) -> Floats:
    """Return the greatest share of each row; `rows` come from `_numbered`."""
    most = np.zeros(int(rows.max(initial=-1)) + 1)
    np.maximum.at(most, rows, shares)
    return most
