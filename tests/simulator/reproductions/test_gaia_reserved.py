"""Reserved cores go to whoever finds all its cores free, and are paid for by whom they wait."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_simulator.reproductions import gaia_reserved as told
from greensched_simulator.reproductions.gaia import HOUR

ROOT = Path(__file__).parents[3]
DATA = Path(os.environ.get("GREENSCHED_DATA") or ROOT.parent / "shared" / "data")


def asked(*runs: tuple[int, int, int, float]) -> told.RequestedRuns:
    """Return runs of first and latest start, length and cores."""
    first, latest, length, cpus = zip(*runs, strict=True)
    return told.RequestedRuns(np.array(first), np.array(latest), np.array(length), np.array(cpus))


@pytest.mark.skipif(not DATA.is_dir(), reason=f"no published data in {DATA}")
def test_the_published_figures_come_out() -> None:
    lines = told.reproduce(DATA)
    assert len(lines) == 12
    assert [line for line in lines if not line.is_equal] == []


def test_who_does_not_fit_on_reserved_cores_runs_on_demand_when_it_must() -> None:
    served = told.serve(asked((0, 0, 10, 2.0), (1, 1, 10, 2.0), (2, 2, 10, 1.0)), 3)
    assert served.start.tolist() == [0, 1, 2]
    assert served.is_on_demand.tolist() == [0, 1, 0]


def test_cores_that_come_free_serve_from_the_next_tick_on() -> None:
    served = told.serve(asked((0, 0, 10, 3.0), (5, 100, 10, 3.0), (10, 10, 10, 1.0)), 3)
    assert served.start.tolist() == [0, 11, 10]
    assert served.is_on_demand.tolist() == [0, 0, 1]


def test_the_oldest_goes_first_and_whoever_fits_beside_it_goes_too() -> None:
    runs = asked((0, 0, 10, 3.0), (1, 50, 10, 3.0), (2, 50, 10, 2.0), (3, 50, 10, 1.0))
    served = told.serve(runs, 4)
    assert served.start.tolist() == [0, 11, 22, 3]
    assert not served.is_on_demand.any()


def test_reserved_cores_are_paid_for_until_the_last_start_and_others_while_they_run() -> None:
    runs = asked((0, 0, 2 * HOUR, 2.0), (HOUR, HOUR, HOUR, 3.0))
    cost_usd = told.cost_usd(runs, told.serve(runs, 3), 3)
    assert cost_usd == pytest.approx((3 * 1.0 + 3 * 0.4 * 1.0) * 0.0624)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 50), st.integers(0, 30), st.integers(1, 20), st.sampled_from([1.0, 2.0])
        ),
        min_size=1,
    ),
    st.integers(0, 5),
)
def test_no_more_cores_are_taken_than_are_reserved_and_nobody_starts_too_late(
    drawn: list[tuple[int, int, int, float]], reserved: int
) -> None:
    runs = asked(*sorted((at, at + wait, ticks, cpus) for at, wait, ticks, cpus in drawn))
    served = told.serve(runs, reserved)
    assert ((runs.first <= served.start) & (served.start <= runs.latest)).all()
    is_ours = served.is_on_demand == 0
    for tick in served.start.tolist():
        runs_now = is_ours & (served.start <= tick) & (tick < served.start + runs.length)
        assert runs.cpus[runs_now].sum() <= reserved
