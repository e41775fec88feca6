"""What verbs print for programs can be read by any JSON parser."""

import json
import math
from typing import Any

import pytest
import yaml

from greensched_cli.output import Output, print_document


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_becomes_null(value: float, capsys: pytest.CaptureFixture[str]) -> None:
    document: Any = {"a": [value, 1.5, {"b": value, "c": "NaN"}]}
    plain = {"a": [None, 1.5, {"b": None, "c": "NaN"}]}
    print_document(document, Output.JSON)
    assert json.loads(capsys.readouterr().out, parse_constant=pytest.fail) == plain
    print_document(document, Output.YAML)
    assert yaml.safe_load(capsys.readouterr().out) == plain
