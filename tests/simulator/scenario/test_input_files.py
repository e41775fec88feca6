"""Where the files lie that a scenario names."""

import re
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from greensched_simulator.scenario.fields import FOLDER, VARIABLES, InputFile

FILE: TypeAdapter[Path] = TypeAdapter(InputFile)


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the scenario and a working directory beside it, each with a data/DE.csv."""
    for name in ("scenario", "work"):
        (tmp_path / name / "data").mkdir(parents=True)
        (tmp_path / name / "data" / "DE.csv").touch()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


@pytest.mark.parametrize(
    ("text", "variables", "found"),
    [
        pytest.param("data/DE.csv", {}, "scenario/data/DE.csv", id="no-variable"),
        pytest.param("data/${ZONE}.csv", {"ZONE": "DE"}, "scenario/data/DE.csv", id="within"),
        pytest.param("${DATA}/DE.csv", {"DATA": "data"}, "work/data/DE.csv", id="relative-folder"),
        pytest.param("${UP}/data/DE.csv", {"UP": "."}, "work/data/DE.csv", id="here"),
    ],
)
def test_a_relative_folder_is_found_from_where_it_was_given(
    places: Path, text: str, variables: dict[str, str], found: str
) -> None:
    context = {FOLDER: places / "scenario", VARIABLES: variables}
    assert FILE.validate_python(text, context=context).absolute() == places / found


def test_a_whole_path_is_found_from_anywhere(places: Path) -> None:
    context = {FOLDER: places / "nowhere", VARIABLES: {"DATA": str(places / "work" / "data")}}
    found = FILE.validate_python("${DATA}/DE.csv", context=context)
    assert found == places / "work" / "data" / "DE.csv"


@pytest.mark.parametrize(
    ("text", "whose"),
    [("none.csv", "the folder of the scenario"), ("${DATA}/none.csv", "the working directory")],
)
def test_a_file_that_is_not_there_is_reported_with_where_it_was_looked_for(
    places: Path, text: str, whose: str
) -> None:
    context = {FOLDER: places / "scenario", VARIABLES: {"DATA": "data"}}
    with pytest.raises(ValidationError, match=re.escape(f"a path is relative to {whose}")):
        FILE.validate_python(text, context=context)
