"""Estimated use of each namespace's budget in the current period."""

from collections.abc import Iterable
from dataclasses import dataclass

from greensched_core.ledger_records import Amounts, LedgerRecord
from greensched_core.units import JOULES_PER_KWH
from greensched_operator.objects.green_policy import Budget
from greensched_policies.planning.budgets import opens_s

_DAY_S = 86_400.0  # every period begins with a day of UTC
LONGEST_PERIOD_S = 31 * _DAY_S


@dataclass(slots=True)
class _Spent:
    energy_kwh: float = 0.0
    carbon_kg: float = 0.0


class Budgets:
    """Counts started work; work over budget waits for the next period, if its terms allow."""

    def __init__(self) -> None:
        self._spent: dict[str, dict[int, _Spent]] = {}  # by namespace, then by day of UTC

    def spend(self, namespace: str, at_s: float, amounts: Amounts) -> None:
        """Add the estimate of a run that has been started."""
        days = self._spent.setdefault(namespace, {})
        for day in [each for each in days if each < _day(at_s - LONGEST_PERIOD_S)]:
            del days[day]
        spent = days.setdefault(_day(at_s), _Spent())
        spent.energy_kwh += (amounts.energy_j or 0.0) / JOULES_PER_KWH
        spent.carbon_kg += (amounts.carbon_g or 0.0) / 1e3

    def recall(self, records: Iterable[LedgerRecord]) -> None:
        """Add the earlier starts in the ledger's records; shadow records do not count."""
        for record in records:
            if not record.is_shadow:
                self.spend(record.subject.namespace, record.at, record.planned)

    def opens_s(self, namespace: str, budget: Budget | None, now_s: float) -> float:
        """Return the earliest start that a namespace's budget allows, in seconds since the epoch.

        It is minus infinity while some budget is left, else the begin of the next period.
        """
        if budget is None:
            return float("-inf")
        span = budget.period.span(now_s)
        days = self._spent.get(namespace, {})
        # A copy in one step: the planning thread calls this while starts are counted.
        spent = [each for day, each in tuple(days.items()) if day >= _day(span.begin)]
        return opens_s(
            sum(each.energy_kwh for each in spent),
            sum(each.carbon_kg for each in spent),
            budget.most_kwh,
            budget.most_kg,
            span.end,
        )


def _day(at_s: float) -> int:
    return int(at_s // _DAY_S)
