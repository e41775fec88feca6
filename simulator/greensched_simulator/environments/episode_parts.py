"""The state of episodes between decisions, as compiled code takes it: many runs in one list."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types
from numba.experimental import structref
from numba.typed import List

from greensched_policies.compiling.compiled import fast
from greensched_policies.compiling.lending import lent_structure
from greensched_policies.costs.cost import Floats, Integers
from greensched_policies.encoding.reward import Shares
from greensched_policies.kernel.seeing_nodes import Singles
from greensched_policies.library.grid_table import GridTable
from greensched_simulator.engine.queue.turns import let_agents_choose
from greensched_simulator.engine.run import Broken, CapChanges, Given, Suspended, run_of
from greensched_simulator.engine.state.autoscaler import OffSpans
from greensched_simulator.engine.state.choices import RuleSet
from greensched_simulator.engine.state.recorded import Recorded

Bits = npt.NDArray[np.int8]

HEAD, JOB, CANDIDATES, DUE, WORKER, FIRST, CAPPED, DOMAIN = range(8)  # places of `asked`
GIVEN, PENDING, IN_ALL = range(3)  # places of `reward`


class Shown(NamedTuple):
    """The agent's observation, written into the environment's arrays.

    Candidates come first, in the engine's order; all columns after them are 0. Heads that the agent
    does not have get no columns.
    """

    nodes: Singles  # [1,22,N] NODE_FEATURES of the nodes with room
    slots: Singles  # [1,15,S] SLOT_FEATURES of the starts
    power_caps: Singles  # [1,13,L] POWER_CAP_FEATURES of the domain whose power cap is decided
    context: Singles  # [1,15] CONTEXT_FEATURES
    is_choice: Bits  # [max(N,S,L)] 1 for the candidates of the decision
    # [8] head; job; number of candidates; job whose node is decided next; number of the job's
    # workers with a node; the first worker's node; node whose power cap is decided, and the domain
    asked: Integers
    reward: Floats  # [3] of the last step; since then; credited so far


class Starts(NamedTuple):
    """The candidate starts as rules see them."""

    columns: Floats  # [9,S] the fields of SlotColumns
    zone: Integers  # [S] the best zone of each


class Machines(NamedTuple):
    """The draw of nodes while nothing runs, [N] watts without PUE."""

    idle_w: Floats
    sleep_w: Floats
    wake_w: Floats


class Accounts(NamedTuple):
    """The inputs of a run's reward, and each job's part of it."""

    grid: GridTable  # the true values, not the forecast
    machines: Machines
    shares: Shares
    least_until_s: float  # the bill covers at least the time until then
    credits: Floats  # [J] reward of each job that was placed
    deadline_s: Floats  # [J] of each job itself, regardless of jobs that wait for it
    has_fast_bill: bool  # whether `fast_bill` covers all costs; else Python bills the episode


class Parts(NamedTuple):
    """The initial parts of an episode."""

    given: Given
    recorded: Recorded
    starts: Starts
    power_caps: Floats  # [6,L] the fields of CapColumns, as rules see them
    accounts: Accounts
    shown: Shown
    asks_when: bool
    asks_where: bool
    most_nodes: int  # the most nodes that are shown


@structref.register
class _EpisodeType(types.StructRef):
    def preprocess_fields(self, fields: Any) -> Any:
        """Have fields hold any value of their kind."""
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


class Episode(structref.StructRefProxy):
    """A run in which an agent decides, and its observation, passed by address."""

    def __new__(cls, *parts: Any) -> Any:
        """Return an episode of all parts."""
        return structref.StructRefProxy.__new__(cls, *parts)


# `kept` keeps the run alive; `run` is the same run, lent, as the engine's functions take it.
structref.define_proxy(Episode, _EpisodeType, ["kept", "run", *Parts._fields[2:]])


@structref.register
class _RuleBookType(types.StructRef):
    def preprocess_fields(self, fields: Any) -> Any:
        """Have fields hold any value of their kind."""
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


class RuleBook(structref.StructRefProxy):
    """Rules, passed once: passing them in each call takes Python longer than many steps."""

    def __new__(cls, rules: Any, zones: int, nodes: int) -> Any:
        """Return a rule book for worlds of at most `zones` zones and `nodes` shown nodes."""
        return structref.StructRefProxy.__new__(cls, rules, zones, nodes)


structref.define_proxy(RuleBook, _RuleBookType, ["rules", "zones", "nodes"])


@structref.register
class _SharedType(types.StructRef):
    def preprocess_fields(self, fields: Any) -> Any:
        """Have fields hold any value of their kind."""
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


class SharedWork(structref.StructRefProxy):
    """The data that threads share in a step: rules, actions, and the division of the episodes.

    Each thread has a share of the episodes, from one of `shares`, [T+1], to the next. `taken`, [T],
    is the first episode of each share that no thread has taken yet; threads take `at_a_time` at
    once. `counters` are those of `sharing.py`.
    """

    def __new__(
        cls, book: Any, actions: Any, shares: Any, taken: Any, at_a_time: int, counters: Any
    ) -> Any:
        """Return the shared data, which keeps its arrays alive."""
        return structref.StructRefProxy.__new__(
            cls, book, actions, shares, taken, at_a_time, counters
        )


structref.define_proxy(
    SharedWork, _SharedType, ["book", "actions", "shares", "taken", "at_a_time", "counters"]
)


@fast
def shared_of(
    book: Any,
    actions: Integers,
    shares: Integers,
    taken: Integers,
    at_a_time: int,
    counters: Integers,
) -> Any:
    """Return the data that threads share, as `go_on` takes it."""
    return SharedWork(book, actions, shares, taken, at_a_time, counters)


@fast
def book_of(rules: RuleSet, zones: int, nodes: int) -> Any:
    """Return rules as `go_on` takes them, for at most `zones` zones and `nodes` shown nodes."""
    return RuleBook(rules, zones, nodes)


@fast
def _episode_of(parts: Parts, book: Any) -> Any:
    run = run_of(parts.given, parts.recorded, book.rules)
    if parts.asks_where:
        let_agents_choose(run.queue.turns)
    return Episode(
        run, lent_structure(run), parts.starts, parts.power_caps, parts.accounts, parts.shown,
        parts.asks_when, parts.asks_where, parts.most_nodes,
    )  # fmt: skip


@fast
def _episodes_of(first: Any) -> Any:
    episodes = List()
    episodes.append(first)
    return episodes


@fast
def _put_episode(episodes: Any, place: int, episode: Any) -> None:
    if place == len(episodes):
        episodes.append(episode)
    else:
        episodes[place] = episode


@fast
def history_of(episodes: Any, place: int) -> tuple[CapChanges, Suspended, Broken, OffSpans]:
    """Return the changes of power caps, the run segments before stops, and when nodes were away.

    They were away since they had failed or, last, since the node autoscaler had turned them off.
    """
    run = episodes[place].kept
    return run.changes, run.agenda.suspended, run.broken, run.off


def episodes_of(every: Sequence[Parts], book: Any) -> Any:
    """Return episodes with the given parts, at least one, as compiled code takes them."""
    episodes = _episodes_of(_episode_of(every[0], book))
    for place, parts in enumerate(every):
        put_episode(episodes, place, parts, book)
    return episodes


def put_episode(episodes: Any, place: int, parts: Parts, book: Any) -> None:
    """Replace the episode at `place` by one with the given parts, or append it at the end."""
    _put_episode(episodes, place, _episode_of(parts, book))
