"""Output formats of verbs: a table for people, JSON or YAML for programs."""

import json
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
    """Print JSON values as YAML or, for any other format, as JSON; verbs draw their own tables."""
    text = json.dumps(document, indent=2) + "\n"
    if output == Output.YAML:
        # Through JSON: PyYAML refuses subclasses of str and float, such as an enum's or numpy's.
        text = yaml.safe_dump(json.loads(text), sort_keys=False, allow_unicode=True)
    print(text, end="", flush=True)
