"""Wraps the learned `when` head as a rule like those in `WHEN_RULES`, for one workload at a time.

A rule sees only candidate starts. The head also sees what the decision rests on, and the coming
day, which are bound here.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from greensched_policies.costs.cost import Floats
from greensched_policies.encoding.observation import DecisionToMake
from greensched_policies.encoding.slot_observation import ComingDay
from greensched_policies.encoding.slots import SlotColumns
from greensched_policies.learned.guard import FallbackReason, Guard, NamedPolicy
from greensched_policies.library.seeing_starts import encode_when
from greensched_policies.rules.catalogue import WhenPolicy

# (slots [B,S,15], context [B,15]) -> relative cost [B,S], lower is better
WhenModel: TypeAlias = Callable[
    [npt.NDArray[np.float32], npt.NDArray[np.float32]], npt.NDArray[np.float32]
]


def when_policy(model: WhenModel, asked: DecisionToMake, day: ComingDay) -> WhenPolicy:
    """Return the model as a rule for the starts of one workload, a row for each zone or one."""

    def cost(slots: SlotColumns) -> Floats:
        seen = encode_when(slots, asked, day)
        return model(seen.slots, seen.context).astype(np.float64)

    return cost


class GuardedWhen:
    """Calls the `when` model, and a rule if the model fails; it never raises.

    All workloads share one guard: after three late answers in a row the rule serves for a while.
    """

    def __init__(
        self,
        name: str,
        model: WhenModel,
        fallback: tuple[str, WhenPolicy],
        *,
        budget_s: float,
        monotonic: Callable[[], float],
        count: Callable[[FallbackReason], None],
    ) -> None:
        rule_name, rule = fallback
        self._model = model
        self.guard: Guard[SlotColumns, WhenPolicy] = Guard(
            NamedPolicy(name, _call_bound),
            NamedPolicy(rule_name, lambda slots, _: rule(slots)),
            budget_s=budget_s,
            monotonic=monotonic,
            count=count,
        )

    def policy(self, asked: DecisionToMake, day: ComingDay) -> WhenPolicy:
        """Return the guarded model as a rule for one workload, as `when_policy` does."""
        bound = when_policy(self._model, asked, day)

        def cost(slots: SlotColumns) -> Floats:
            return self.guard.answer(slots, bound).relative_cost

        return cost


def _call_bound(slots: SlotColumns, bound: WhenPolicy) -> Floats:
    return bound(slots)
