"""A start costs the chance that the run then ends late: less is saved where little time is left."""

import numpy as np
import pytest

from greensched_policies.rules.catalogue import WHEN_RULES
from tests.policies.planning.one_start import choose_start
from tests.policies.planning.test_planning import MIDNIGHT_S, SLOT_S, empty, grid, slot_of, work

# Carbon falls by 1 % from each slot to the next.
FALLING = [100.0 * 0.99**slot for slot in range(12)]


@pytest.mark.parametrize(
    ("due", "error", "slot"),
    [
        pytest.param(None, 0.2, 8, id="no-deadline"),
        pytest.param(20.0, 0.2, 8, id="far-from-its-deadline"),
        # At its latest start it is late with a chance of 3.1 %, which costs 6 %, and saves 1 % more
        # than a slot before, where the chance is 0.04 %.
        pytest.param(9.75, 0.3, 7, id="a-later-start-saves-less-than-its-risk-costs"),
        pytest.param(10.5, 0.0, 8, id="its-runtime-is-known"),
        pytest.param(8.5, 0.0, 7, id="a-known-runtime-would-end-late"),
    ],
)
def test_a_start_that_saves_little_is_not_worth_a_late_end(
    due: float | None, error: float, slot: int
) -> None:
    risky = work()._replace(
        due_s=np.inf if due is None else MIDNIGHT_S + due * SLOT_S,
        runtime_error=error,
        late_price=2.0,
    )
    chosen = choose_start(grid(FALLING), empty(8.0), risky, MIDNIGHT_S)
    assert slot_of(chosen) == slot


def test_what_saves_more_than_the_risk_costs_is_still_chosen() -> None:
    clean_last = [100.0] * 8 + [10.0] * 4
    risky = work()._replace(due_s=MIDNIGHT_S + 9.75 * SLOT_S, runtime_error=0.3, late_price=2.0)
    assert slot_of(choose_start(grid(clean_last), empty(8.0), risky, MIDNIGHT_S)) == 8


@pytest.mark.parametrize("rule", sorted(WHEN_RULES))
@pytest.mark.parametrize("full_slots", [0, 1], ids=["room-now", "no-room-before-the-next-slot"])
def test_every_rule_counts_late_ends_in_the_unit_of_its_costs(rule: str, full_slots: int) -> None:
    """A late end that costs a hundred runs is chosen by no rule, whatever it minimises."""
    sure = work(rule=rule)._replace(
        due_s=MIDNIGHT_S + 4.5 * SLOT_S, runtime_error=0.0, late_price=100.0
    )
    plan = empty(8.0)
    plan.keep(0, MIDNIGHT_S, MIDNIGHT_S + full_slots * SLOT_S, 8.0)
    clean_when_late = [100.0, 99.99, 99.98, 99.97] + [50.0] * 8
    chosen = choose_start(grid(clean_when_late), plan, sure, MIDNIGHT_S)
    assert slot_of(chosen) <= 3
