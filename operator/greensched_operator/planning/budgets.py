"""What the work of each namespace has taken of its budget, by estimate, in the current period."""

from collections.abc import Iterable
from dataclasses import dataclass

from greensched_core.ledger_records import Amounts, LedgerRecord
from greensched_core.units import JOULES_PER_KWH
from greensched_operator.objects.green_policy import Budget

_DAY_S = 86_400.0  # of UTC; every period begins with one
LONGEST_PERIOD_S = 31 * _DAY_S


@dataclass(slots=True)
class _Spent:
    energy_kwh: float = 0.0
    carbon_kg: float = 0.0


class Budgets:
    """Counts what is started; what is above a budget waits for the next period, if it may."""

    def __init__(self) -> None:
        self._spent: dict[str, dict[int, _Spent]] = {}  # of a namespace, by day of UTC

    def spend(self, namespace: str, at_s: float, amounts: Amounts) -> None:
        """Count the estimate of a run that has been started."""
        days = self._spent.setdefault(namespace, {})
        for day in [each for each in days if each < _day(at_s - LONGEST_PERIOD_S)]:
            del days[day]
        spent = days.setdefault(_day(at_s), _Spent())
        spent.energy_kwh += (amounts.energy_j or 0.0) / JOULES_PER_KWH
        spent.carbon_kg += (amounts.carbon_g or 0.0) / 1e3

    def recall(self, records: Iterable[LedgerRecord]) -> None:
        """Count what the ledger remembers of earlier starts, of nothing else."""
        for record in records:
            if not record.is_shadow:
                self.spend(record.subject.namespace, record.at, record.planned)

    def opens_s(self, namespace: str, budget: Budget | None, now_s: float) -> float:
        """Return from when on work of a namespace may start: now, or when the next period begins.

        Seconds since the epoch; minus infinity while something is left.
        """
        if budget is None:
            return float("-inf")
        span = budget.period.span(now_s)
        days = self._spent.get(namespace, {})
        # All at once: a planning asks from a thread of its own, while starts are counted.
        spent = [each for day, each in tuple(days.items()) if day >= _day(span.begin)]
        is_over = (
            budget.energy_kwh is not None
            and sum(each.energy_kwh for each in spent) >= budget.energy_kwh
        ) or (
            budget.carbon_kg is not None
            and sum(each.carbon_kg for each in spent) >= budget.carbon_kg
        )
        return span.end if is_over else float("-inf")


def _day(at_s: float) -> int:
    return int(at_s // _DAY_S)
