"""Applies an agent's action; if it names no candidate, a rule chooses instead. Compiled."""

from typing import Any

import numpy as np

from greensched_policies.compiling.compiled import borrowing, fast
from greensched_policies.costs.capping import POWER_CAPS, CapColumns
from greensched_policies.costs.cost import Floats
from greensched_policies.encoding.slots import SlotColumns
from greensched_policies.kernel.starts import as_slots
from greensched_simulator.engine.execution.power_caps import set_power_cap
from greensched_simulator.engine.queue.deciding import due_or_put_off, keep_start
from greensched_simulator.engine.state.choices import NOWHERE
from greensched_simulator.engine.state.starts import Start
from greensched_simulator.environments.episode_parts import CANDIDATES, CAPPED, DOMAIN, DUE, JOB
from greensched_simulator.environments.placing import give_node


@fast
def apply_when(episode: Any, action: int) -> None:
    """Set a job's start to the agent's choice; if it is no candidate, the rule chooses."""
    asked, run, now_s = episode.shown.asked, episode.run, episode.run.events.now_s[0]
    job, count, place = asked[JOB], asked[CANDIDATES], action
    if place < 0 or place >= count:
        place = int(np.argmin(run.rules.when[0](_columns_of(episode.starts.columns, count))[0]))
    zone = episode.starts.zone[place]
    chosen = Start(now_s + place * run.terms.slot_s, zone, run.estimates.runtime_s[job, zone])
    keep_start(job, chosen, run)
    asked[DUE] = due_or_put_off(job, now_s, chosen.start_s, run.events.starts)


@borrowing
def apply_where(episode: Any, action: int) -> None:
    """Give a job the node that the agent chose; if it is no candidate, the rule chooses."""
    asked, place = episode.shown.asked, action
    asked[DUE] = NOWHERE
    if place < 0 or place >= asked[CANDIDATES]:
        place = _best_node(episode)
    give_node(episode, asked[JOB], episode.run.cluster.found[place])


@fast
def _best_node(episode: Any) -> int:
    """Return the candidate with the least cost by the rule."""
    shown = episode.shown
    seen = shown.nodes[:, :, : shown.asked[CANDIDATES]].transpose((0, 2, 1))
    return int(np.argmin(episode.run.rules.where[0](seen, shown.context)[0]))


@fast
def _columns_of(table: Floats, count: int) -> SlotColumns:
    """Return the first `count` starts of a table [9,S] as a when rule takes them, [1,count]."""
    return as_slots(table[:, :count].copy().reshape((table.shape[0], 1, count)))


@fast
def apply_how_fast(episode: Any, action: int) -> None:
    """Set the power cap that the agent chose; if it is no candidate, the rule chooses."""
    asked, run, place = episode.shown.asked, episode.run, action
    if place < 0 or place >= asked[CANDIDATES]:
        place = int(np.argmin(run.rules.cap[0](_power_caps_of(episode.power_caps))[0]))
    set_power_cap(run.events.now_s[0], asked[DOMAIN], asked[CAPPED], place, run)


@fast
def _power_caps_of(table: Floats) -> CapColumns:
    """Return a table [6,L] of power caps as a cap rule takes it, [1,L]."""
    shape = (1, POWER_CAPS.size)
    return CapColumns(
        table[0].reshape(shape), table[1].reshape(shape), table[2].reshape(shape),
        table[3].reshape(shape), table[4].reshape(shape), table[5].reshape(shape),
    )  # fmt: skip
