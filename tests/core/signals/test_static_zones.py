from pathlib import Path

import pytest

from greensched_core.errors import BadInput
from greensched_core.signals.static import load_static_zones, parse_static_zones


def test_a_file_goes_over_the_shipped_table(tmp_path: Path) -> None:
    file = tmp_path / "zones.toml"
    file.write_text("[zones.DE]\ncarbon_grams_per_kwh = 12\n[zones.MY_HALL]\nprice_per_mwh = 5\n")
    zones = load_static_zones(file)
    mine = zones.find("DE")
    assert mine is not None
    assert (mine.carbon_g_per_kwh, mine.price_per_mwh) == (12.0, None)
    assert zones.find("my-hall") is not None
    assert zones.find("FR") is not None
    assert zones.default.carbon_g_per_kwh == 481.0


def test_a_file_may_change_the_default(tmp_path: Path) -> None:
    file = tmp_path / "zones.toml"
    file.write_text('[default]\ncarbon_grams_per_kwh = 300\nprice_per_mwh = 90\ncurrency = "EUR"\n')
    assert load_static_zones(file).default.price_per_mwh == 90.0


def test_an_empty_file_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "zones.toml"
    file.write_text("")
    assert load_static_zones(file) == load_static_zones()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("zones = 3", "zones must be tables", id="no-table"),
        pytest.param("[zones", "is not TOML", id="broken"),
        pytest.param("[zones.DE]", "neither carbon_grams_per_kwh nor price_per_mwh", id="empty"),
        pytest.param("[zones.DE]\ncarbon_grams_per_kwh = -1", "0 … 10000", id="negative"),
        pytest.param("[zones.DE]\ncarbon_grams_per_kwh = 1e9", "0 … 10000", id="too-much"),
        pytest.param("[zones.DE]\ncarbon_grams_per_kwh = 'x'", "must be a number", id="text"),
        pytest.param("[zones.DE]\nprice_per_mwh = nan", "must be", id="nan"),
        pytest.param("[zones.DE]\nprice_per_mwh = true", "must be a number", id="boolean"),
        pytest.param("[zones.DE]\nprice = 3", "unknown price", id="misspelt"),
        pytest.param("[zone.DE]\nprice_per_mwh = 3", "unknown table 'zone'", id="misspelt-table"),
        pytest.param("[zones.DE]\nprice_per_mwh = 3\ncurrency = 4", "currency", id="currency"),
        pytest.param(
            "[zones.DE]\nprice_per_mwh = 3\n[zones.de]\nprice_per_mwh = 4",
            "zones.de is the same zone as zones.DE",
            id="twice",
        ),
    ],
)
def test_a_faulty_file_says_where_and_what(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "zones.toml"
    file.write_text(text)
    with pytest.raises(BadInput, match=words) as raised:
        load_static_zones(file)
    assert "zones.toml" in str(raised.value)


def test_all_faults_come_at_once() -> None:
    with pytest.raises(BadInput) as raised:
        parse_static_zones("[zones.A]\nx = 1\n[zones.B]\nprice_per_mwh = 'y'", "here")
    assert "zones.A" in str(raised.value)
    assert "zones.B" in str(raised.value)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(BadInput, match="nowhere"):
        load_static_zones(Path("/nowhere/zones.toml"))
