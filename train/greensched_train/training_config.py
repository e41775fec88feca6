"""The configuration of a training, read from a YAML file and checked all at once."""

from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from greensched_core.errors import BadInput

Count = Annotated[int, Field(ge=1)]
PositiveNumber = Annotated[float, Field(gt=0.0)]


class _Section(BaseModel):
    """A part of the file; a name that it does not know is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Evolution(_Section):
    """Evolution strategies: see `evolution.py`."""

    algorithm: Literal["evolution"] = "evolution"
    generations: Count = 200
    pairs: Count = 16  # of parameters on both sides of the mean, in each generation
    worlds: Count = 4  # in which each of them runs
    deviation: PositiveNumber = 0.05  # standard deviation of the parameters around their mean
    learning_rate: PositiveNumber = 0.02


class Validation(_Section):
    """How the best parameters are told from others."""

    worlds: Count = 32
    every: Count = 5  # generations


class Worlds(_Section):
    """Folders of scenario files to train and validate in, in place of worlds drawn from the data.

    A path is relative to the configuration's file. Scenarios take turns, each time with a new seed.
    """

    training: Path | None = None
    validation: Path | None = None


class TrainingConfig(_Section):
    """What is trained, on what, and how."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
    seed: Annotated[int, Field(ge=0)] = 1
    hidden: tuple[Count, ...] = (16,)  # units of the layers of each head's residual net
    # What a share of deadlines missed beyond what is allowed costs, relative to run-now+spread: at
    # 10, each per cent missed costs 10 %.
    price_of_misses: PositiveNumber = 10.0
    worlds: Worlds = Worlds()
    method: Evolution = Evolution()
    validation: Validation = Validation()


def read_config(path: Path) -> TrainingConfig:
    """Return the configuration in a file. Raises BadInput that names what is wrong, and where."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as fault:
        raise BadInput(f"{path}: {fault.strerror}: give the path of a YAML file") from fault
    except (UnicodeDecodeError, yaml.YAMLError) as fault:
        raise BadInput(f"{path} is no YAML: {fault}") from fault
    try:
        return _with_whole_paths(TrainingConfig.model_validate(content), path.parent)
    except ValidationError as fault:
        lines = [_line_of(each["loc"], each["msg"], each["type"]) for each in fault.errors()]
        raise BadInput("\n".join([f"{path} cannot be used:", *lines])) from fault


def _with_whole_paths(config: TrainingConfig, folder: Path) -> TrainingConfig:
    """Return the configuration with absolute paths. Raises BadInput for a folder without files."""
    found = dict[str, Path]()
    for name, given in config.worlds:
        if given is None:
            continue
        found[name] = (folder / given).resolve()
        if not any(found[name].glob("*.yaml")):
            raise BadInput(f"worlds.{name}: {found[name]} has no scenario: give a folder of *.yaml")
    return config.model_copy(update={"worlds": Worlds(**found)})


def _line_of(place: tuple[int | str, ...], message: str, kind: str) -> str:
    name = ".".join(map(str, place)) or "the file"
    if kind == "extra_forbidden":
        return f"  {name}: there is no such setting; docs/training.md lists all"
    return f"  {name}: {message}"
