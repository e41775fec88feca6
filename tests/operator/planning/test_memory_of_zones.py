"""The operator's plan has the memory of zones, of running pods and of held work."""

from __future__ import annotations

from dataclasses import replace

from greensched_operator.planning.cluster_state import Zone
from greensched_operator.planning.start_planning import plan_starts
from greensched_policies.planning.planning import Running, StartReason
from tests.operator.annotated_work import HOUR_S, NOW_S
from tests.operator.planning.test_room_for_starts import BEGIN_S, situation, waiting

GIB = 2.0**30


def test_work_waits_until_there_is_memory_for_it() -> None:
    one = waiting()
    hungry = replace(one, work=replace(one.work, memory_bytes=20.0 * GIB))
    here = replace(
        situation(Running(0, BEGIN_S + 2 * HOUR_S, 1.0, memory_bytes=50.0 * GIB)),
        zones=(Zone("A", 8.0, 5.0, memory_bytes=64.0 * GIB),),
    )
    [found], [other] = plan_starts([hungry], here)[0], plan_starts([one], here)[0]
    assert (found.start_s, found.chosen.why) == (BEGIN_S + 2 * HOUR_S, StartReason.NO_ROOM)
    assert other.start_s <= NOW_S
