"""What an agent's answer brings about; rules stand in where it names no candidate. Compiled."""

from typing import Any

import numpy as np

from greensched_policies.costs.capping import LEVELS, CapColumns
from greensched_policies.costs.cost import Floats
from greensched_policies.encoding.slots import SlotColumns
from greensched_simulator.compiling.compiled import borrowing, fast
from greensched_simulator.engine.execution.pacing import set_level
from greensched_simulator.engine.queue.deciding import due_or_put_off, keep_start
from greensched_simulator.engine.state.choices import NOWHERE
from greensched_simulator.engine.state.starts import Start, as_slots
from greensched_simulator.environments.placing import give_node
from greensched_simulator.environments.scene_parts import CANDIDATES, DUE, JOB, PACED


@fast
def answer_when(scene: Any, action: int) -> None:
    """Let a job start when the agent chose; for what is no candidate the rule chooses."""
    asked, run, now_s = scene.shown.asked, scene.run, scene.run.events.now_s[0]
    job, count, place = asked[JOB], asked[CANDIDATES], action
    if place < 0 or place >= count:
        place = int(np.argmin(run.rules.when[0](_columns_of(scene.starts.columns, count))[0]))
    zone = scene.starts.zone[place]
    chosen = Start(now_s + place * run.terms.slot_s, zone, run.prospects.runtime_s[job, zone])
    keep_start(job, chosen, run)
    asked[DUE] = due_or_put_off(job, now_s, chosen.start_s, run.events.starts)


@borrowing
def answer_where(scene: Any, action: int) -> None:
    """Give a job the node that the agent chose; for what is no candidate the rule chooses."""
    asked, place = scene.shown.asked, action
    asked[DUE] = NOWHERE
    if place < 0 or place >= asked[CANDIDATES]:
        place = _liked_best(scene)
    give_node(scene, asked[JOB], scene.run.cluster.found[place])


@fast
def _liked_best(scene: Any) -> int:
    """Return the node that the rule likes best of those that are shown."""
    shown = scene.shown
    seen = shown.nodes[:, :, : shown.asked[CANDIDATES]].transpose((0, 2, 1))
    return int(np.argmin(scene.run.rules.where[0](seen, shown.context)[0]))


@fast
def _columns_of(table: Floats, count: int) -> SlotColumns:
    """Return the first so many starts of a table [8,S] as a when rule takes them, [1,count]."""
    return as_slots(table[:, :count].copy().reshape((table.shape[0], 1, count)))


@fast
def answer_how_fast(scene: Any, action: int) -> None:
    """Have a node at the level that the agent chose; for what is no candidate the rule chooses."""
    asked, run, place = scene.shown.asked, scene.run, action
    if place < 0 or place >= asked[CANDIDATES]:
        place = int(np.argmin(run.rules.cap[0](_levels_of(scene.levels))[0]))
    set_level(run.events.now_s[0], asked[PACED], place, run)


@fast
def _levels_of(table: Floats) -> CapColumns:
    """Return a table [6,L] of levels as a cap rule takes it, [1,L]."""
    shape = (1, LEVELS.size)
    return CapColumns(
        table[0].reshape(shape), table[1].reshape(shape), table[2].reshape(shape),
        table[3].reshape(shape), table[4].reshape(shape), table[5].reshape(shape),
    )  # fmt: skip
