"""Whether the forecast that plans are made on is still the one they were made on."""

import pytest

from greensched_operator.planning.outlooks import Outlooks, outlooks_of, tell_the_same
from tests.core.signals.test_signal_chain import LIMITS, NOW, chain, signal

HORIZON_S = 48 * 3_600.0


def outlooks_at(passed_s: float, carbon: float = 300.0) -> Outlooks:
    """Return the outlook on a zone with a forecast of a day, and on one without."""
    signals = chain()
    signals.upsert("de", signal(carbon), NOW)
    return outlooks_of(signals, ["DE", "US-TEX-ERCO"], NOW + passed_s, HORIZON_S)


@pytest.mark.parametrize("passed_s", [0.0, 300.0, 900.0, 3_700.0, LIMITS.max_stale_s])
def test_a_forecast_stays_the_same_while_time_passes(passed_s: float) -> None:
    assert tell_the_same(outlooks_at(0.0), outlooks_at(passed_s))


@pytest.mark.parametrize("later", [
    pytest.param(outlooks_at(LIMITS.max_stale_s + 1.0), id="it-became-too-old"),
    pytest.param(outlooks_at(300.0, carbon=301.0), id="another-value"),
    pytest.param(outlooks_at(-900.0), id="the-clock-was-set-back"),
])  # fmt: skip
def test_another_forecast_is_not_the_same(later: Outlooks) -> None:
    assert not tell_the_same(outlooks_at(0.0), later)
