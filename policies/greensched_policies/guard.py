"""Keeps a learned policy from ever delaying, spoiling or losing an answer."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from greensched_policies.catalogue import WherePolicy

LATE_IN_A_ROW = 3  # one or two late calls may be the machine's fault, three are the model's
OPEN_S = 30.0  # long enough to serve a backlog by rule, short enough to notice recovery


class FallbackReason(StrEnum):
    """Why a model's answer was late or was replaced by the rule's."""

    LATE = "late"  # the model answered, but over its budget
    NOT_FINITE = "not_finite"  # a NaN or an infinity among the costs
    ERROR = "error"  # an exception, or an answer of another shape
    OPEN = "open"  # the model is given a rest after too many late answers


@dataclass(frozen=True, slots=True)
class NamedPolicy:
    """A policy and the name that metrics and explanations give it."""

    name: str
    policy: WherePolicy


@dataclass(frozen=True, slots=True)
class GuardedAnswer:
    """Finite costs, who gave them, and what went wrong on the way, if anything."""

    relative_cost: npt.NDArray[np.float32]  # [B,N]
    answered_by: str
    reason: FallbackReason | None


class Guard:
    """Asks the model, and the fallback rule where the model fails; it never raises.

    A late answer is still used, since the rule would only come later; but it is counted, and
    after three in a row the rule alone serves for 30 s. Then the model gets one try: late once
    more, and it rests again. An answer that is not finite, has another shape, or is an
    exception is replaced by the rule's. Should the rule itself fail, all candidates are equal.
    """

    def __init__(
        self,
        model: NamedPolicy,
        fallback: NamedPolicy,
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
        self._closed_from: float | None = None  # monotonic seconds; None while closed

    @property
    def is_open(self) -> bool:
        """Whether the model rests now and the rule serves."""
        return self._closed_from is not None and self._monotonic() < self._closed_from

    def answer(
        self, nodes: npt.NDArray[np.float32], context: npt.NDArray[np.float32]
    ) -> GuardedAnswer:
        """Return finite costs [B,N] for `nodes` [B,N,16] and `context` [B,8]."""
        if self.is_open:
            self._count(FallbackReason.OPEN)
            return self._ask_fallback(nodes, context, FallbackReason.OPEN)
        started = self._monotonic()
        relative_cost, reason = _ask(self._model.policy, nodes, context)
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
            return self._ask_fallback(nodes, context, reason)
        return GuardedAnswer(relative_cost, self._model.name, reason)

    def _note_late(self, now: float) -> None:
        self._late_in_a_row += 1
        if self._late_in_a_row >= LATE_IN_A_ROW:
            self._late_in_a_row = LATE_IN_A_ROW - 1
            self._closed_from = now + OPEN_S

    def _ask_fallback(
        self,
        nodes: npt.NDArray[np.float32],
        context: npt.NDArray[np.float32],
        reason: FallbackReason | None,
    ) -> GuardedAnswer:
        relative_cost, _ = _ask(self._fallback.policy, nodes, context)
        if relative_cost is None:
            equal = np.ones(nodes.shape[:2], dtype=np.float32)
            return GuardedAnswer(equal, "none", reason)
        return GuardedAnswer(relative_cost, self._fallback.name, reason)


def _ask(
    policy: WherePolicy, nodes: npt.NDArray[np.float32], context: npt.NDArray[np.float32]
) -> tuple[npt.NDArray[np.float32] | None, FallbackReason | None]:
    """Return the policy's costs, or None and the reason why they cannot be used."""
    try:
        relative_cost = policy(nodes, context)
        if relative_cost.shape != nodes.shape[:2]:
            return None, FallbackReason.ERROR
        if not np.isfinite(relative_cost).all():
            return None, FallbackReason.NOT_FINITE
    except Exception:  # noqa: BLE001 - whatever a model raises, the pod must be placed
        return None, FallbackReason.ERROR
    return relative_cost, None
