"""The jobs that a GreenPolicy lets wait: its terms for each, and the present plans."""

from typing import NamedTuple

import numpy as np

from greensched_policies.compiling.compiled import fast, inlined
from greensched_policies.costs.cost import Floats, Integers
from greensched_policies.kernel.planning import Basis, Many
from greensched_policies.library.functions import FOUND
from greensched_policies.library.nets import PackedNet
from greensched_simulator.engine.run import Run

HELD, REPLANS, COUNTED_SLOT, PERIOD = range(4)  # of a hold's counts
KWH, KG, KWH_NOW, KG_NOW = range(4)  # of a job's amounts
DEADLINE_S, LONGEST_S, MARGIN_S, RESUME_S, LEAST_PAUSE_S = range(5)  # of a pause table's numbers
PAUSES, FROM_S, RESTART_S, MOST_RESTARTS, FIRST_S = range(5)  # of a job's pauses


class BudgetTable(NamedTuple):
    """What jobs may take in a period; no period ends: as much as they like."""

    most_kwh: float  # infinity: no limit
    most_kg: float  # of CO2e
    ends_s: Floats  # [P] of the periods; the first one goes on at the scenario's begin


class PauseTable(NamedTuple):
    """Which jobs may be paused while they run, and how; no jobs: none."""

    may_pause: Integers  # [J] 1 for one that may; [0]
    # [5,J] deadline; what it takes on the slowest node, and the margin of that; start-up of a
    # resumed run; its shortest pause
    numbers: Floats
    least_run_s: float  # before a pause
    longest_hold_s: float
    most_restarts: Floats  # [J] of a job that has not started; [0]


class LearnedTable(NamedTuple):
    """The `when` head of a bundle, and what it is shown of jobs besides their starts."""

    net: PackedNet  # NO_NET: a rule gives the costs
    deadline_s: Floats  # [J] infinite without one


class HoldTable(NamedTuple):
    """What a GreenPolicy says of J jobs in Z zones."""

    may_wait: Integers  # [J] 1 for a job that it lets wait
    asked: Floats  # [ASKED,J] as `library.functions` has them
    power_w: Floats  # [J,Z] that each adds, with the site's PUE
    jitter_s: Floats  # [J] delay of a new plan
    quiet_s: Floats  # [2,1,Q] begins and ends of the spans in which nothing starts
    held_share: float  # of all cores, that held jobs may request together
    replans_s: Floats  # [R] times at which held jobs are planned again
    is_whole: Integers  # [R] 1 if all are, else those whose room is gone or that lack room
    budget: BudgetTable
    pauses: PauseTable
    learned: LearnedTable


class Hold(NamedTuple):
    """The terms, and what changes during a run."""

    terms: HoldTable
    asked: Floats  # [ASKED,J] with the starts planned before, and the grams on arrival
    found: Floats  # [FOUND,J] the choice for each job that was planned
    is_held: Integers  # [J] 1 while it is held
    # [4] jobs held; times that all was planned again; slot for which overdue jobs were counted;
    # periods of the budget that are over
    counts: Integers
    busy: Floats  # [2] mean share of cores that ran jobs over about the last day, and when noted
    # [4,J] what each takes of a budget: as last planned, and if it runs at the time of that plan;
    # [4,0]: there is no budget
    amounts: Floats
    spent: Floats  # [2] kWh and kg of the budget's present period
    # [5,J] how often each was paused; it is not resumed before; what a restart takes; how many are
    # left; when it was first released, NaN before; [5,0] if none may be paused
    paused: Floats
    whole_s: Floats  # [J,Z] expected runtime in each zone of the whole job


@fast
def empty_hold(terms: HoldTable, whole_s: Floats) -> Hold:
    """Return a hold of no job."""
    jobs, counts = terms.may_wait.size, np.zeros(4, np.int64)
    counts[COUNTED_SLOT] = -1
    found, is_held = np.zeros((FOUND, jobs)), np.zeros(jobs, np.int64)
    amounts = np.zeros((4, jobs if terms.budget.ends_s.size > 0 else 0))
    pauses = terms.pauses
    paused = np.zeros((5, pauses.may_pause.size))
    paused[FROM_S], paused[FIRST_S] = -np.inf, np.nan
    if paused.shape[1] > 0:
        paused[RESTART_S] = pauses.numbers[RESUME_S]
        paused[MOST_RESTARTS] = pauses.most_restarts
    return Hold(
        terms, terms.asked.copy(), found, is_held, counts, np.zeros(2), amounts, np.zeros(2),
        paused, whole_s.copy(),
    )  # fmt: skip


@inlined
def is_pausable(job: int, hold: Hold) -> bool:
    """Return whether a job may be paused while it runs."""
    may = hold.terms.pauses.may_pause
    return may.size > 0 and may[job] == 1


@inlined
def slot_begin_s(now_s: float, run: Run) -> float:
    """Return the begin of the slot that contains a time."""
    return now_s // run.terms.slot_s * run.terms.slot_s


@fast
def basis_of(begin_s: float, run: Run, hold: Hold) -> Basis:
    """Return the forecast and the plan from the begin of a slot on."""
    return Basis(run.grid, run.plan, begin_s, run.terms.slot_s, hold.busy[0])


@fast
def many_of(run: Run, hold: Hold) -> Many:
    """Return all jobs as the kernel takes them."""
    return Many(hold.asked, run.estimates.runtime_s, hold.terms.power_w, hold.terms.quiet_s)
