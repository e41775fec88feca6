"""The GPU watts by kind of work in docs/simulator.md, against the published data."""

from statistics import median

import pytest

from docs.gpu_shares import DATA, serving_shares, training_shares


@pytest.fixture(autouse=True)
def _data() -> None:
    if not DATA.is_dir():
        pytest.skip(f"no data sets at {DATA}; set GREENSCHED_DATA")


def test_six_trainings_draw_what_the_docs_propose_for_a_scenario() -> None:
    medians = sorted(round(median(each), 2) for each in training_shares(DATA).values())
    assert medians == [0.15, 0.57, 0.64, 0.87, 0.88, 0.89]


def test_served_models_draw_two_thirds_of_their_range_at_the_median() -> None:
    shares = serving_shares(DATA)
    assert (len(shares), round(median(shares), 2)) == (165, 0.67)
