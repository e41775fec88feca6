"""Converts prices to one currency; exchange rates come only from the settings."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from greensched_core.errors import BadInput


@dataclass(frozen=True)
class Currencies:
    """The currency of all our prices, and the exchange rates to it.

    Raises BadInput for a rate that is not finite and above zero.
    """

    target: str = "EUR"  # ISO 4217
    rates: Mapping[str, float] = field(default_factory=dict)  # {"USD": 0.92}: 1 USD is 0.92 EUR

    def __post_init__(self) -> None:
        for currency, rate in self.rates.items():
            if not (math.isfinite(rate) and rate > 0):
                raise BadInput(
                    f"exchange rate {currency}={rate}: it must be above zero; write what one "
                    f"{currency} is worth in {self.target}"
                )

    def rate(self, currency: str) -> float | None:
        """Return the worth of one unit of `currency` in the target; None if no rate is given.

        A price without a currency counts as in the target currency.
        """
        if currency in ("", self.target):
            return 1.0
        return self.rates.get(currency)
