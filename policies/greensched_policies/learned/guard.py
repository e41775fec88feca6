"""Prevents a learned policy from delaying, spoiling or losing an answer."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, ParamSpec, TypeAlias

import numpy as np
import numpy.typing as npt

from greensched_policies.encoding.slots import SlotColumns

LATE_IN_A_ROW = 3  # one or two late calls may be the machine's fault, three are the model's
OPEN_S = 30.0  # long enough to serve a backlog by rule, short enough to notice recovery

P = ParamSpec("P")  # a head's arguments; the first is the candidates
Costs: TypeAlias = npt.NDArray[Any]  # [B,N] float32 of graphs, float64 of rules on starts


class FallbackReason(StrEnum):
    """Why a model's answer was late or was replaced by the rule's."""

    LATE = "late"  # the model answered, but over its budget
    NOT_FINITE = "not_finite"  # a NaN or an infinity among the costs
    ERROR = "error"  # an exception, or an answer of another shape
    OPEN = "open"  # the model is paused after too many late answers


@dataclass(frozen=True, slots=True)
class NamedPolicy(Generic[P]):
    """A policy and its name in metrics and explanations."""

    name: str
    policy: Callable[P, Costs]


@dataclass(frozen=True, slots=True)
class GuardedAnswer:
    """Finite costs, the policy that gave them, and the reason of a fallback, if any."""

    relative_cost: Costs
    answered_by: str
    reason: FallbackReason | None


class Guard(Generic[P]):
    """Calls the model, and the fallback rule if the model fails; it never raises.

    A late answer is counted but still used, since the rule's would come even later. After three
    late answers in a row only the rule serves for 30 s. Then the model gets one try; if that is
    late, it is paused again. If the model raises, or its answer is not finite or has another
    shape, the rule answers instead. If the rule fails too, all candidates are equal.

    The candidates are the first argument: features [B,N,…] of nodes, or the columns of starts.
    """

    def __init__(
        self,
        model: NamedPolicy[P],
        fallback: NamedPolicy[P],
        *,
        budget_s: float,
        monotonic: Callable[[], float],
        count: Callable[[FallbackReason], None],
    ) -> None:
        self._model = model
        self._fallback = fallback
        self._budget_s = budget_s
        self._monotonic = monotonic
        self._count = count
        self._late_in_a_row = 0
        self._closed_from: float | None = None  # end of a pause, monotonic seconds

    @property
    def is_open(self) -> bool:
        """Whether the model is paused now and the rule serves."""
        return self._closed_from is not None and self._monotonic() < self._closed_from

    def answer(self, *given: P.args, **options: P.kwargs) -> GuardedAnswer:
        """Return finite costs [B,N] for the arguments of the policies."""
        if self.is_open:
            self._count(FallbackReason.OPEN)
            return self._call_fallback(FallbackReason.OPEN, *given, **options)
        started = self._monotonic()
        relative_cost, reason = _call(self._model.policy, *given, **options)
        ended = self._monotonic()
        if ended - started > self._budget_s:
            self._note_late(ended)
            reason = reason or FallbackReason.LATE
        else:
            self._late_in_a_row = 0
            self._closed_from = None
        if reason is not None:
            self._count(reason)
        if relative_cost is None:
            return self._call_fallback(reason, *given, **options)
        return GuardedAnswer(relative_cost, self._model.name, reason)

    def _note_late(self, now: float) -> None:
        self._late_in_a_row += 1
        if self._late_in_a_row >= LATE_IN_A_ROW:
            self._late_in_a_row = LATE_IN_A_ROW - 1
            self._closed_from = now + OPEN_S

    def _call_fallback(
        self, reason: FallbackReason | None, /, *given: P.args, **options: P.kwargs
    ) -> GuardedAnswer:
        relative_cost, _ = _call(self._fallback.policy, *given, **options)
        if relative_cost is None:
            equal = np.ones(_shape_of(given[0]), dtype=np.float32)
            return GuardedAnswer(equal, "none", reason)
        return GuardedAnswer(relative_cost, self._fallback.name, reason)


# The `where` head takes features of nodes [B,N,22] and context [B,15].
WhereRule: TypeAlias = NamedPolicy[npt.NDArray[np.float32], npt.NDArray[np.float32]]
WhereGuard: TypeAlias = Guard[npt.NDArray[np.float32], npt.NDArray[np.float32]]


def _call(
    policy: Callable[P, Costs], /, *given: P.args, **options: P.kwargs
) -> tuple[Costs | None, FallbackReason | None]:
    """Return the policy's costs, or None and the reason why they cannot be used."""
    try:
        relative_cost = policy(*given, **options)
        if relative_cost.shape != _shape_of(given[0]):
            return None, FallbackReason.ERROR
        if not np.isfinite(relative_cost).all():
            return None, FallbackReason.NOT_FINITE
    except Exception:  # noqa: BLE001 - whatever a model raises, the work must be placed
        return None, FallbackReason.ERROR
    return relative_cost, None


def _shape_of(candidates: object) -> tuple[int, ...]:
    """Return the shape (decisions, candidates) of features [B,N,…] or of the columns of starts."""
    columns: Any = candidates.wait_s if isinstance(candidates, SlotColumns) else candidates
    shape: tuple[int, ...] = columns.shape[:2]
    return shape
