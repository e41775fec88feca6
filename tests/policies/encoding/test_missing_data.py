import numpy as np
import pytest

from greensched_policies.encoding.missing_data import mean_filled

NAN = float("nan")


@pytest.mark.parametrize(
    ("values", "filled"),
    [
        pytest.param([1.0, 3.0], [1.0, 3.0], id="all-known"),
        pytest.param([1.0, NAN, 3.0], [1.0, 2.0, 3.0], id="one-without"),
        pytest.param([-4.0, NAN], [-4.0, -4.0], id="negative-price"),
        pytest.param([NAN, NAN], [NAN, NAN], id="none-known"),
        pytest.param([], [], id="no-candidates"),
    ],
)
def test_a_candidate_without_data_gets_the_mean_of_the_others(
    values: list[float], filled: list[float]
) -> None:
    found, missing = mean_filled(np.array([values]))
    assert found[0] == pytest.approx(filled, nan_ok=True)
    assert missing[0].tolist() == [value != value for value in values]


def test_each_decision_of_a_batch_has_its_own_mean() -> None:
    found, _ = mean_filled(np.array([[1.0, NAN], [NAN, 5.0], [NAN, NAN]]))
    assert found[:2].tolist() == [[1.0, 1.0], [5.0, 5.0]]
    assert np.isnan(found[2]).all()
