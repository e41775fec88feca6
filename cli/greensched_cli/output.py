"""How a verb writes what it shows: a table for people, JSON or YAML for programs."""

import json
from enum import StrEnum
from typing import Annotated, Any

import typer
import yaml


class Output(StrEnum):
    """How an answer is written."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


AsOutput = Annotated[Output, typer.Option("--output", "-o", help="Output format.")]


def print_document(document: Any, output: Output) -> None:
    """Print JSON values as JSON or YAML; a table is for the verb to draw."""
    if output == Output.YAML:
        print(yaml.safe_dump(document, sort_keys=False, allow_unicode=True), end="")
    else:
        print(json.dumps(document, indent=2))
