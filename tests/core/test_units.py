"""Figures as text."""

import pytest

from greensched_core.units import chance_text, percent_text, signed_percent


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (-0.684, "-68 %"),
        (0.04, "+4 %"),
        (0.004, "0 %"),
        (-0.004, "0 %"),
        (0.0, "0 %"),
        (-1.0, "-100 %"),
        (0.1, "+10 %"),
        (12.0, "+1200 %"),
    ],
)
def test_a_change_has_its_sign_and_nothing_has_none(share: float, text: str) -> None:
    assert signed_percent(share) == text


def test_a_share_has_no_sign() -> None:
    assert percent_text(0.432) == "43 %"


@pytest.mark.parametrize(
    ("chance", "text"),
    [
        (0.0, "less than 0.01 %"),
        (0.00009, "less than 0.01 %"),
        (0.0001, "0.01 %"),
        (0.0091, "0.91 %"),
        (0.05, "5 %"),
        (0.374, "37 %"),
        (0.994, "99 %"),
        (0.995, "99.5 %"),
        (0.9998, "99.98 %"),
        (1.0, "more than 99.99 %"),
    ],
)
def test_a_chance_is_never_told_as_certainty(chance: float, text: str) -> None:
    assert chance_text(chance) == text
