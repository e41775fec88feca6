from pathlib import Path

import pytest
from pydantic import Field, model_validator
from pydantic_settings import SettingsConfigDict

from greensched_core.errors import BadInput
from greensched_core.settings import ComponentSettings, load_settings, unknown_variables


class Kettle(ComponentSettings):
    model_config = SettingsConfigDict(env_prefix="KETTLE_")

    power_w: float = Field(2000.0, gt=0)
    litres: float = Field(1.5, gt=0)
    teas: list[str] = ["green"]
    sugar: dict[str, int] = {}


def test_flags_win_over_the_environment_over_the_file_over_defaults(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert load_settings(Kettle).power_w == 2000.0
    file = tmp_path / "kettle.yaml"
    file.write_text("power_w: 1000\nlitres: 1\n")
    monkeypatch.setenv("KETTLE_CONFIG_FILE", str(file))
    assert (load_settings(Kettle).power_w, load_settings(Kettle).litres) == (1000.0, 1.0)
    monkeypatch.setenv("KETTLE_POWER_W", "1500")
    assert load_settings(Kettle).power_w == 1500.0
    assert load_settings(Kettle, ["--power-w=1800"]).power_w == 1800.0
    assert load_settings(Kettle, ["--power-w=1800"]).litres == 1.0


def test_all_faults_are_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KETTLE_POWER_W", "-3")
    monkeypatch.setenv("KETTLE_LITRES", "many")
    with pytest.raises(BadInput, match=r"KETTLE_POWER_W.*KETTLE_LITRES"):
        load_settings(Kettle)


def test_a_misspelt_key_of_the_file_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "kettle.yaml"
    file.write_text("power: 1000\n")
    monkeypatch.setenv("KETTLE_CONFIG_FILE", str(file))
    with pytest.raises(BadInput, match="power"):
        load_settings(Kettle)


def test_a_file_that_cannot_be_read_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "kettle.yaml"
    file.write_text("power_w: [1, 2\n")
    monkeypatch.setenv("KETTLE_CONFIG_FILE", str(file))
    with pytest.raises(BadInput, match="kettle.yaml"):
        load_settings(Kettle)
    monkeypatch.setenv("KETTLE_CONFIG_FILE", str(tmp_path / "absent.yaml"))
    with pytest.raises(BadInput, match="absent.yaml does not exist"):
        load_settings(Kettle)


@pytest.mark.parametrize(
    ("text", "teas"),
    [
        ("black", ["black"]),
        ("black, white", ["black", "white"]),
        ('["black", "white"]', ["black", "white"]),
        ("", []),
    ],
)
def test_a_list_is_written_with_commas_or_as_json(
    monkeypatch: pytest.MonkeyPatch, text: str, teas: list[str]
) -> None:
    monkeypatch.setenv("KETTLE_TEAS", text)
    assert load_settings(Kettle).teas == teas


def test_what_is_no_json_is_reported_with_all_other_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KETTLE_TEAS", "[black")
    monkeypatch.setenv("KETTLE_SUGAR", "two")
    monkeypatch.setenv("KETTLE_POWER_W", "-3")
    with pytest.raises(BadInput) as told:
        load_settings(Kettle)
    for part in ("KETTLE_TEAS", "write a,b or", "KETTLE_SUGAR", "write JSON such", "KETTLE_POWER"):
        assert part in str(told.value)


@pytest.mark.parametrize("text", ["- power_w\n", "kettle\n", "1: 2\n", "\x00", "[" * 5_000])
def test_a_file_that_holds_no_names_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str
) -> None:
    file = tmp_path / "kettle.yaml"
    file.write_text(text)
    monkeypatch.setenv("KETTLE_CONFIG_FILE", str(file))
    with pytest.raises(BadInput, match="kettle.yaml"):
        load_settings(Kettle)


def test_misspelt_variables_are_found() -> None:
    environment = {
        "KETTLE_POWER_W": "1",
        "KETTLE_POWR_W": "1",
        "PATH": "",
        "KETTLE_CONFIG_FILE": "",
    }
    assert unknown_variables(Kettle, environment) == ["KETTLE_POWR_W"]


class Pair(ComponentSettings):
    model_config = SettingsConfigDict(env_prefix="PAIR_")

    url: str = ""
    least: float = 1.0
    most: float = 2.0

    @model_validator(mode="after")
    def _in_order(self) -> "Pair":
        if self.least > self.most:
            raise ValueError("least is above most: swap them")
        return self


def test_settings_wrong_only_together_are_reported_without_showing_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PAIR_LEAST", "3")
    monkeypatch.setenv("PAIR_URL", "http://user:secret@prometheus")
    with pytest.raises(BadInput) as fault:
        load_settings(Pair)
    assert str(fault.value) == "settings: least is above most: swap them"
