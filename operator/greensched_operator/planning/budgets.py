"""Estimated use of each namespace's budget in the current period."""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from greensched_core.ledger_records import Amounts
from greensched_core.units import JOULES_PER_KWH
from greensched_operator.objects.green_policy import Budget
from greensched_policies.planning.budgets import opens_s

_DAY_S = 86_400.0  # every period begins with a day of UTC
LONGEST_PERIOD_S = 31 * _DAY_S
_DIGITS = 6  # of kWh and kg, as written


@dataclass(slots=True)
class _Spent:
    energy_kwh: float = 0.0
    carbon_kg: float = 0.0


class Budgets:
    """Counts started work; work over budget waits for the next period, if its terms allow."""

    def __init__(self) -> None:
        self._spent: dict[str, dict[int, _Spent]] = {}  # by namespace, then by day of UTC
        self._limited: set[str] = set()  # namespaces that have a budget
        self._changed: set[str] = set()  # namespaces whose use has changed since it was written
        self._stale: set[str] = set()  # namespaces of which only old use is written
        self._today = 0  # the day of UTC of the latest start

    def spend(self, namespace: str, at_s: float, amounts: Amounts) -> None:
        """Add the estimate of a run that has been started."""
        energy_kwh = (amounts.energy_j or 0.0) / JOULES_PER_KWH
        if _day(at_s) > self._today:
            self._today = _day(at_s)
            self._forget_before(_day(at_s - LONGEST_PERIOD_S))
        self._add(namespace, _day(at_s), energy_kwh, (amounts.carbon_g or 0.0) / 1e3)
        self._changed.add(namespace)

    def opens_s(self, namespace: str, budget: Budget | None, now_s: float) -> float:
        """Return the earliest start that a namespace's budget allows, in seconds since the epoch.

        It is minus infinity while some budget is left, else the begin of the next period.
        """
        if budget is None:
            return float("-inf")
        self._limited.add(namespace)
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

    def changes(self) -> dict[str, str | None]:
        """Return the use of each namespace with a budget that has changed since it was written.

        As JSON, by namespace: lists of a day of UTC since the epoch, kWh, and kg. None: its use is
        too old to count, and may be removed.
        """
        stale = dict.fromkeys(self._stale - self._spent.keys())
        return {name: self._written(name) for name in sorted(self._changed & self._limited)} | stale

    def everything(self) -> dict[str, str]:
        """Return the use of each namespace with a budget, as `changes` has it."""
        return {name: self._written(name) for name in sorted(self._limited & self._spent.keys())}

    def written(self, changes: Mapping[str, str | None]) -> None:
        """Take note that changes were written; what has changed again meanwhile stays changed."""
        self._changed -= {
            name
            for name, text in changes.items()
            if name not in self._spent or self._written(name) == text
        }
        self._stale -= {name for name, text in changes.items() if text is None}

    def recall(self, written: Mapping[str, str], now_s: float) -> list[str]:
        """Add the use that an earlier leader wrote; return the namespaces that cannot be read."""
        unread, since = [], _day(now_s - LONGEST_PERIOD_S)
        for name, text in written.items():
            try:
                days = msgspec.json.decode(text, type=list[tuple[int, float, float]])
            except msgspec.DecodeError:
                unread.append(name)
                continue
            recent = [each for each in days if each[0] >= since]
            if not recent:
                self._stale.add(name)
            for each in recent:
                self._add(name, *each)
        return unread

    def _forget_before(self, since: int) -> None:
        """Forget the use of earlier days, and namespaces without any other."""
        for name, days in tuple(self._spent.items()):
            kept = {day: spent for day, spent in days.items() if day >= since}
            if kept:
                self._spent[name] = kept
                continue
            del self._spent[name]
            self._changed.discard(name)
            if name in self._limited:
                self._limited.discard(name)
                self._stale.add(name)

    def _written(self, namespace: str) -> str:
        days = sorted(self._spent[namespace].items())
        return msgspec.json.encode(
            [(day, round(each.energy_kwh, _DIGITS), round(each.carbon_kg, _DIGITS))
             for day, each in days]
        ).decode()  # fmt: skip

    def _add(self, namespace: str, day: int, energy_kwh: float, carbon_kg: float) -> None:
        spent = self._spent.setdefault(namespace, {}).setdefault(day, _Spent())
        spent.energy_kwh += energy_kwh
        spent.carbon_kg += carbon_kg


def _day(at_s: float) -> int:
    return int(at_s // _DAY_S)
