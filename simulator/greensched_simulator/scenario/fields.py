"""The kinds of values in a scenario file: durations, quantities, files and others."""

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    ValidationInfo,
    WithJsonSchema,
)

from greensched_core.durations import parse_duration
from greensched_core.errors import BadInput
from greensched_core.power.hardware import shipped_catalogue
from greensched_core.quantities import parse_quantity
from greensched_core.quoting import near
from greensched_core.signals.timestamps import parse_timestamp

Value = TypeVar("Value")
FOLDER, VARIABLES = "folder", "variables"  # context of validation: Path, Mapping[str, str]
NO_LIMIT = "none"
BYTES_EXAMPLE = "64Gi"
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_FOLDER_FIRST = re.compile(r"\$\{\w+\}/")


def _text(value: Any, example: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} has no unit; write for example {example}")
    return value


def _parsed(parse: Callable[[str], Value], text: str) -> Value:
    try:
        return parse(text)
    except BadInput as fault:
        raise ValueError(str(fault)) from fault


def _duration(value: Any) -> float:
    return _parsed(parse_duration, _text(value, "90s, 6h or 7d"))


def _wait(value: Any) -> float:
    return math.inf if value == NO_LIMIT else _duration(value)


def _bytes(value: Any) -> float:
    return _parsed(parse_quantity, _text(value, BYTES_EXAMPLE))


def _cores(value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return _parsed(parse_quantity, _text(value, "16 or 500m"))


def _moment(value: Any) -> float:
    return _parsed(parse_timestamp, _text(value, "2023-06-01T00:00:00Z"))


def _file(value: Any, info: ValidationInfo) -> Path:
    context = info.context or {}
    variables = context.get(VARIABLES, {})
    text = _text(value, "data/carbon.csv")
    unset = sorted({name for name in _VARIABLE.findall(text) if not variables.get(name)})
    if unset:
        raise ValueError(f"{text!r} needs the variable {', '.join(unset)}: set it to a folder")
    filled = _VARIABLE.sub(lambda found: str(variables[found[1]]), text)
    # A variable is set in the shell, so its relative folder starts from the working directory.
    starts_with_variable = _FOLDER_FIRST.match(text) is not None
    path = Path(filled if starts_with_variable else context.get(FOLDER, Path()) / filled)
    if not path.is_file():
        base = "the working directory" if starts_with_variable else "the folder of the scenario"
        raise ValueError(f"there is no file {path}; a path is relative to {base}")
    return path


def _hardware(value: Any) -> str:
    name, known = _text(value, "epyc-7763-1s"), shipped_catalogue().machines
    if name.lower() not in known:
        raise ValueError(
            f"{name!r} is not in the power catalogue{near(name, known)}; docs/power.md lists its "
            "names, or give curve_watts instead"
        )
    return name.lower()


def _gpu_model(value: Any) -> str:
    name, gpus = _text(value, "a100-sxm"), shipped_catalogue().gpus
    if name.lower() not in gpus:
        raise ValueError(
            f"{name!r} is not in the power catalogue{near(name, gpus)}; docs/power.md lists "
            "its GPUs"
        )
    return name.lower()


def _written(example: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "examples": [example]})


def parsed_text(parse: Callable[[str], Any], example: str) -> Any:
    """Return the type of a field whose text `parse` reads; it raises BadInput."""
    read = BeforeValidator(lambda value: _parsed(parse, _text(value, example)))
    return Annotated[Any, read, _written(example)]


Duration = Annotated[
    float, BeforeValidator(_duration), Field(ge=0), _written("6h")
]  # in the file 90s, 6h, 7d; seconds here
Wait = Annotated[
    float, BeforeValidator(_wait), Field(ge=0), _written("6h")
]  # or `none`, which is infinity
Bytes = Annotated[float, BeforeValidator(_bytes), Field(gt=0), _written(BYTES_EXAMPLE)]
Cores = Annotated[
    float, BeforeValidator(_cores), Field(gt=0, allow_inf_nan=False),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string"}], "examples": [16, "500m"]}),
]  # fmt: skip
Moment = Annotated[
    float, BeforeValidator(_moment), _written("2023-06-01T00:00:00Z")
]  # seconds since the epoch
InputFile = Annotated[
    Path, BeforeValidator(_file), _written("data/carbon.csv.gz")
]  # an existing file; `${NAME}` is an environment variable
PolicyFile = Annotated[Path, BeforeValidator(_file), _written("policy.yaml")]  # likewise
Hardware = Annotated[str, BeforeValidator(_hardware), _written("epyc-7763-1s")]
GpuModel = Annotated[str, BeforeValidator(_gpu_model), _written("a100-sxm")]


class ScenarioPart(BaseModel):
    """A part of the file: immutable; unknown names and wrong types are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class SeriesFile(ScenarioPart):
    """A series in a CSV file, plain or gzipped."""

    file: InputFile = Field(
        description="CSV with a header, relative to this file; `${NAME}` is an "
        "environment variable."
    )
    time_column: str = Field(description="Column of the times; each value holds from its time on.")
    column: str = Field(description="Column of the values.")
    time_zone: Literal["UTC"] | None = Field(
        default=None,
        description="Reads times without an offset as UTC; not needed if the column's name ends "
        "in utc.",
    )


def _source(value: Any) -> str | None:
    tags = {"file": "from file", "constant": "constant value", "shape": "synthetic shape"}
    given = [tag for name, tag in tags.items() if isinstance(value, dict) and name in value]
    return given[0] if len(given) == 1 else None


def one_source(example: str) -> Discriminator:
    """Return the discriminator of series: from a file, a constant or a shape."""
    return Discriminator(
        _source,
        custom_error_type="one_source",
        custom_error_message=f"write one of `file`, `constant` and `shape`, such as {example}",
    )
