"""The data that policies are trained, validated and tested on: by time, by region and by trace.

The split was committed before any policy was trained. Nothing of the test part may choose a bundle,
not even its hyperparameters. The data sets are those of docs/scenarios.md and end with 2023.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

# The scenarios on which policies are tested, fixed before any training.
TEST_SCENARIOS = Path(__file__).parent / "test_scenarios"
# What one unit of a market's currency is worth in EUR: European Central Bank, euro reference rates,
# mean of 2023, rounded.
EXCHANGE_RATES = {
    "AUD": 0.61, "CAD": 0.69, "JPY": 0.0066, "KRW": 0.00071, "SGD": 0.69, "USD": 0.92, "ZAR": 0.05,
}  # fmt: skip
# The currency of each zone that has both carbon and prices.
CURRENCIES = {
    "AU-NSW": "AUD", "CA-ON": "CAD", "DE-LU": "EUR", "JP-TK": "JPY", "KR": "KRW", "SG": "SGD",
    "US-CAL-CISO": "USD", "US-MIDA-PJM": "USD", "US-NY-NYIS": "USD", "US-TEX-ERCO": "USD",
    "ZA": "ZAR",
}  # fmt: skip
_LEARNED = ("CA-ON", "DE-LU", "JP-TK", "KR", "US-CAL-CISO", "US-MIDA-PJM", "US-NY-NYIS")
_CARBON = "${GREENSCHED_DATA}/sustain-cluster-carbon"
_PRICES = "${GREENSCHED_DATA}/sustain-cluster-prices"
_TRACES = "${GREENSCHED_DATA}/gaia-cluster-traces"


class DataPart(NamedTuple):
    """A part of the data: scenarios of it begin and end within its time."""

    name: str
    begin: datetime
    end: datetime
    zones: tuple[str, ...]
    traces: tuple[str, ...]  # of jobs, beside generated ones


def _day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


TRAINING = DataPart(
    "training", _day("2021-01-01"), _day("2022-10-01"), _LEARNED, ("pai-70k.csv.gz",)
)
# Later weeks of the same zones, and one zone that is in no other part.
VALIDATION = DataPart(
    "validation", _day("2022-10-01"), _day("2023-01-01"), (*_LEARNED, "ZA"), ("pai-70k.csv.gz",)
)
# A later year, also of zones and traces that are in no other part.
TEST = DataPart(
    "test",
    _day("2023-01-01"),
    _day("2024-01-01"),
    (*_LEARNED, "AU-NSW", "SG", "US-TEX-ERCO"),
    ("azure-70k.csv.gz", "mustang-trace-2015-70k.csv.gz"),
)
DATA_PARTS = (TRAINING, VALIDATION, TEST)
# From the end of a scenario's length to that of the data: jobs then still run and are billed.
MARGIN = timedelta(days=4)


def zone_grid(zone: str, forecast_error: float) -> dict[str, Any]:
    """Return the grid of a zone as a scenario has it."""
    currency = CURRENCIES[zone]
    return {
        "carbon": {
            "file": f"{_CARBON}/{zone}_2021-2023_hourly.csv.gz",
            "time_column": "datetime_utc",
            "column": "ci_lca_g_per_kwh",
        },
        "price": {
            "file": f"{_PRICES}/{zone}_2020-2023_hourly.csv.gz",
            "time_column": "datetime_utc",
            "column": f"price_{currency.lower()}_per_mwh",
            "unit": f"{currency}/MWh",
        },
        "forecast_error": forecast_error,
    }


def trace_file(name: str) -> str:
    """Return the path of a trace as a scenario has it."""
    return f"{_TRACES}/{name}"


def euro_rates(zones: tuple[str, ...]) -> dict[str, float]:
    """Return the exchange rates that a scenario in EUR needs for its zones."""
    needed = sorted({CURRENCIES[zone] for zone in zones} - {"EUR"})
    return {currency: EXCHANGE_RATES[currency] for currency in needed}
