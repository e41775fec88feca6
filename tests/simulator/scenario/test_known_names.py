"""What a fault says of a name that a scenario file does not know at its place."""

import pytest

from greensched_simulator.scenario.file import FieldPlace
from greensched_simulator.scenario.known_names import hint


@pytest.mark.parametrize(
    ("place", "told"),
    [
        pytest.param(("xyzzy",), "", id="like-nothing"),
        pytest.param(("cluster", "start"), "; start belongs at the top", id="too-deep-by-one"),
        pytest.param(
            ("workload", "generator", "generator"),
            "; generator belongs at workload.generator or services[].requests.generator",
            id="too-deep",
        ),
        pytest.param(
            ("services", 0, "generator"),
            "; generator belongs at services[].requests.generator or workload.generator",
            id="nearest-first",
        ),
        pytest.param(
            ("workload", "forecast_error"),
            " (close: estimate_error); forecast_error belongs at grids.NAME.forecast_error",
            id="both",
        ),
        pytest.param(
            ("grids", "NO", "shape"),
            "; shape belongs at grids.NAME.carbon.shape or grids.NAME.price.shape or "
            "grids.NAME.marginal.shape",
            id="three-places-at-most",
        ),
    ],
)
def test_an_unknown_name_leads_to_the_names_meant(place: FieldPlace, told: str) -> None:
    assert hint(place) == told


@pytest.mark.parametrize("place", [("workload", "generatr"), ("generatr",)])
def test_a_misspelt_name_leads_to_names_like_it(place: FieldPlace) -> None:
    assert hint(place).startswith(" (close: generator")


def test_a_name_of_the_wrong_place_is_not_only_said_to_be_close_to_itself() -> None:
    told = hint(("generator",))
    assert told.endswith(
        "; generator belongs at workload.generator or services[].requests.generator"
    )
