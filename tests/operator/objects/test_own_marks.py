"""What GreenSched wrote on an object is read once, when the object is; garbage counts as absent."""

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from greensched_core import labels
from greensched_operator.holding.judging import MayWait, judge
from greensched_operator.objects.own_marks import OwnMarks, read_marks
from greensched_operator.planning.cluster_state import Zone
from greensched_operator.planning.start_planning import plan_starts
from tests.operator.annotated_work import ENFORCING, HOUR_S, NOW_S, marks, rules, work_of
from tests.operator.situations import situation_of

AT = "2023-11-14T22:13:20Z"  # NOW_S


def test_all_that_was_written_is_read() -> None:
    written = {
        labels.HELD_AT: AT,
        labels.LATEST_START: AT,
        labels.PLANNED_START: AT,
        labels.RELEASED_AT: AT,
        labels.DECISION: '{"zone": "DE", "carbonGramsAtArrival": 2.5}',
    }
    assert read_marks(written) == OwnMarks(NOW_S, NOW_S, NOW_S, NOW_S, 2.5)


@given(st.dictionaries(st.sampled_from(sorted(labels.WRITTEN)), st.text()))
def test_what_cannot_be_read_counts_as_absent(written: dict[str, str]) -> None:
    assert isinstance(read_marks(written), OwnMarks)


def test_work_without_marks_has_none() -> None:
    assert work_of("train", {labels.DEADLINE: "6h"}).marks == OwnMarks()


class CountedReads(dict[str, str]):
    """Annotations that count how often a value is read."""

    reads = 0

    def get(self, name: str, default: Any = None) -> Any:
        self.reads += name in labels.WRITTEN
        return super().get(name, default)

    def __getitem__(self, name: str) -> str:
        self.reads += name in labels.WRITTEN
        return super().__getitem__(name)


def test_no_mark_is_read_again_while_work_is_planned() -> None:
    written = marks(NOW_S, NOW_S + 4 * HOUR_S, deadline="8h", planned_start=AT)
    counted = CountedReads(written)
    waiting = judge(replace(work_of("train", {}), annotations=counted), rules(ENFORCING), NOW_S)
    assert isinstance(waiting, MayWait) and counted.reads > 0
    reads = counted.reads
    situation = situation_of(NOW_S, [500.0, 100.0, 100.0], np.nan, Zone("A", 64.0, 5.0))
    [planned], _ = plan_starts([waiting], situation)
    assert (planned.waiting.work.marks.planned_start_s, counted.reads) == (NOW_S, reads)
