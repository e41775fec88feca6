"""The best of the starts that a window, a budget and quiet hours leave, and what is told of it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_policies.costs.quiet_spans import QuietSpans
from greensched_policies.encoding.weights import NOT_ABOVE_NOW, CarbonLimit, Weights
from greensched_policies.planning.core_plan import CorePlan
from greensched_policies.planning.outlook import outlook_of
from greensched_policies.planning.planning import NEVER, Chosen, StartReason, StartRequest
from greensched_policies.rules.catalogue import WHEN_RULES
from tests.policies.planning.one_start import choose_start

SLOT_S = 900.0
ALL_DAY = QuietSpans((-1e6,), (1e6,))
#         now  1      2      3      4      5      6
CARBON = [200.0, 200.0, 50.0, 300.0, 290.0, 100.0, 300.0]


def chosen(
    carbon: list[float] = CARBON, *, from_slot: float = -math.inf,
    quiet: QuietSpans = NEVER, busy: tuple[int, ...] = (), latest: int = 100,
    kept: int | None = None,
) -> Chosen:  # fmt: skip
    """Return the choice of work of one slot by its carbon; `busy` slots have no room."""
    outlook = outlook_of(0.0, SLOT_S, np.array([carbon]), np.full((1, len(carbon)), 50.0))
    plan = CorePlan(np.array([10.0]), 0.0, SLOT_S, len(carbon))
    for slot in busy:
        plan.keep(0, slot * SLOT_S, (slot + 1) * SLOT_S, 10.0)
    asked = StartRequest(
        [SLOT_S], latest * SLOT_S, 1.0, [4000.0], Weights(0.0, 1.0, 0.0),
        WHEN_RULES["planned-window"], CarbonLimit(NOT_ABOVE_NOW), from_s=from_slot * SLOT_S,
        quiet=quiet, kept_start_s=None if kept is None else kept * SLOT_S,
    )  # fmt: skip
    return choose_start(outlook, plan, asked, 0.0)


def quiet_in(*slots: int) -> QuietSpans:
    return QuietSpans(
        tuple(slot * SLOT_S for slot in slots), tuple((slot + 1) * SLOT_S for slot in slots)
    )


@pytest.mark.parametrize(
    ("limits", "slot", "why"),
    [
        pytest.param({}, 2, StartReason.PLANNED, id="no-limit"),
        pytest.param({"from_slot": 2}, 2, StartReason.NOT_BEFORE, id="the-first-is-the-best"),
        pytest.param({"from_slot": 2.9}, 2, StartReason.NOT_BEFORE, id="within-a-slot"),
        pytest.param({"from_slot": 3}, 5, StartReason.PLANNED, id="a-later-one-is-cleaner"),
        pytest.param({"from_slot": 6}, 6, StartReason.NOT_BEFORE, id="only-a-dirty-one"),
        pytest.param({"from_slot": 9, "latest": 4}, 4, StartReason.NOT_BEFORE, id="none-in-time"),
        pytest.param({"quiet": quiet_in(0, 1)}, 2, StartReason.NOT_BEFORE, id="quiet-now"),
        pytest.param({"quiet": quiet_in(2)}, 5, StartReason.PLANNED, id="quiet-when-cleanest"),
        pytest.param({"quiet": quiet_in(2, 5)}, 0, StartReason.NOW_IS_BEST, id="when-it-is-clean"),
        pytest.param({"quiet": quiet_in(2), "from_slot": 1}, 5, StartReason.PLANNED, id="both"),
        pytest.param({"quiet": quiet_in(2), "kept": 2}, 5, StartReason.PLANNED, id="planned-there"),
        pytest.param({"quiet": ALL_DAY, "latest": 3}, 3, StartReason.NOT_BEFORE, id="always-quiet"),
    ],
)
def test_the_best_of_the_allowed_starts_is_chosen(
    limits: dict[str, float], slot: int, why: StartReason
) -> None:
    found = chosen(**limits)  # type: ignore[arg-type]  # a table of keyword arguments
    assert (found.start_s, found.expected_s, found.why) == (slot * SLOT_S, slot * SLOT_S, why)


@pytest.mark.parametrize(
    ("limits", "carbon", "saving"),
    [
        pytest.param({"from_slot": 6}, 300.0, -0.5, id="dirtier-than-now"),
        pytest.param({"from_slot": 3}, 100.0, 0.5, id="cleaner-than-now"),
    ],
)
def test_what_is_told_compares_the_planned_run_with_a_run_now(
    limits: dict[str, float], carbon: float, saving: float
) -> None:
    found = chosen(**limits)  # type: ignore[arg-type]  # a table of keyword arguments
    assert (found.run.carbon_g_per_kwh, found.run_now.carbon_g_per_kwh) == (carbon, 200.0)
    assert found.saving == pytest.approx(saving)


def test_a_wait_beyond_the_first_allowed_start_is_judged_against_that_start() -> None:
    found = chosen([100.0, 300.0, 300.0, 200.0], from_slot=1)
    assert (found.start_s, found.why) == (3 * SLOT_S, StartReason.PLANNED)


def test_without_room_at_the_first_allowed_start_it_waits_for_room() -> None:
    found = chosen([200.0, 200.0, 100.0, 250.0, 300.0], from_slot=2, busy=(2,))
    assert (found.start_s, found.why) == (3 * SLOT_S, StartReason.NO_ROOM)


@given(
    carbon=st.lists(st.integers(10, 500).map(float), min_size=2, max_size=12),
    from_slot=st.floats(-1.0, 12.0),
    quiet=st.sets(st.integers(0, 11)),
    busy=st.sets(st.integers(0, 11)),
)
def test_no_start_lies_where_none_is_allowed_unless_all_do(
    carbon: list[float], from_slot: float, quiet: set[int], busy: set[int]
) -> None:
    taken = tuple(slot for slot in busy if slot < len(carbon))
    spans = quiet_in(*sorted(quiet))
    found = chosen(carbon, from_slot=from_slot, quiet=spans, busy=taken, latest=len(carbon) - 1)
    allowed = [
        slot for slot in range(len(carbon)) if slot not in quiet and slot + 1 > from_slot
    ] or [len(carbon) - 1]
    assert round(found.start_s / SLOT_S) in allowed
    assert round(found.expected_s / SLOT_S) in allowed
