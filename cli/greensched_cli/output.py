"""Output formats of verbs: a table for people, JSON or YAML for programs."""

import json
import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

import typer
import yaml


class Output(StrEnum):
    """An output format."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


AsOutput = Annotated[Output, typer.Option("--output", "-o", help="Output format.")]


def print_document(document: Any, output: Output) -> None:
    """Print JSON values as YAML or, for any other format, as JSON; verbs draw their own tables.

    JSON has neither NaN nor infinity: they become null.
    """
    text = json.dumps(_finite(document), indent=2, allow_nan=False) + "\n"
    if output == Output.YAML:
        # Through JSON: PyYAML refuses subclasses of str and float, such as an enum's or numpy's.
        text = yaml.safe_dump(json.loads(text), sort_keys=False, allow_unicode=True)
    print(text, end="", flush=True)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
