"""Which share of the machines may run by carbon-aware provisioning."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import lambertw

from greensched_policies.costs.provisioning import LEAST_SHARE, provisioned_share


def share(now: float, least: float, most: float) -> float:
    return float(provisioned_share(*(np.array([[each]]) for each in (now, least, most)))[0, 0])


def thresholds(least: float, most: float, machines: int) -> np.ndarray:
    """Return until which intensity each machine beyond the least share runs, as published."""
    alpha = 1.0 / (1.0 + lambertw((least / most - 1.0) / np.e).real)
    place = np.arange(machines)
    found: np.ndarray = most * (
        1.0 - (1.0 - 1.0 / alpha) * (1.0 + 1.0 / (alpha * machines)) ** place
    )
    return found


@given(st.floats(1.0, 400.0), st.floats(1.01, 5.0), st.floats(0.0, 1.0))
def test_as_many_run_as_the_thresholds_of_k_search_let(
    least: float, swing: float, place: float
) -> None:
    most = least * swing
    now = least + place * (most - least)
    machines = 20_000
    runs = (thresholds(least, most, machines) >= now).sum() / machines
    found = (share(now, least, most) - LEAST_SHARE) / (1.0 - LEAST_SHARE)
    assert found == pytest.approx(runs, abs=2e-4)


@pytest.mark.parametrize(("now", "least", "most", "expected"), [
    pytest.param(100.0, 100.0, 400.0, 1.0, id="cleanest-hour"),
    pytest.param(400.0, 100.0, 400.0, LEAST_SHARE, id="dirtiest-hour"),
    pytest.param(99.0, 100.0, 400.0, 1.0, id="cleaner-than-forecast"),
    pytest.param(500.0, 100.0, 400.0, LEAST_SHARE, id="dirtier-than-forecast"),
    pytest.param(300.0, 300.0, 300.0, 1.0, id="nothing-changes"),
    pytest.param(0.0, 0.0, 0.0, 1.0, id="no-carbon-or-no-data"),
    pytest.param(0.0, 0.0, 300.0, 1.0, id="an-hour-without-carbon"),
    pytest.param(1.0, 0.0, 300.0, LEAST_SHARE, id="any-carbon-beside-such-an-hour"),
])  # fmt: skip
def test_the_share_at_its_ends(now: float, least: float, most: float, expected: float) -> None:
    assert share(now, least, most) == pytest.approx(expected, abs=1e-3)


@given(st.floats(1.0, 400.0), st.floats(1.01, 5.0), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_a_dirtier_hour_never_lets_more_run(
    least: float, swing: float, one: float, other: float
) -> None:
    cleaner, dirtier = (least * (1.0 + each * (swing - 1.0)) for each in sorted((one, other)))
    most = least * swing
    assert share(dirtier, least, most) <= share(cleaner, least, most) + 1e-9
