"""A configuration that cannot be used is refused by what is wrong, and where."""

from pathlib import Path

import pytest

from greensched_core.errors import BadInput
from greensched_train.training_config import read_config


def test_a_name_is_enough(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("name: usual\n")
    config = read_config(tmp_path / "config.yaml")
    assert (config.seed, config.hidden, config.worlds.training) == (1, (16,), None)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        pytest.param("name: x\nsteps: 3", "steps: there is no such setting", id="unknown"),
        pytest.param(
            "name: x\nmethod: {worlds: 0}", "method.worlds: .*greater than or equal to 1", id="none"
        ),
        pytest.param("name: My Policy", "name: .*pattern", id="name"),
        pytest.param("{", "is no YAML", id="no-yaml"),
        pytest.param("", "the file: ", id="empty"),
        pytest.param("name: x\nworlds: {training: nowhere}", "has no scenario", id="no-scenarios"),
    ],
)
def test_what_cannot_be_used_is_named(content: str, fault: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(content)
    with pytest.raises(BadInput, match=fault):
        read_config(tmp_path / "config.yaml")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="No such file or directory"):
        read_config(tmp_path / "config.yaml")
