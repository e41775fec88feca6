"""Loads a scenario, or reports all its faults at once."""

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from greensched_core.durations import format_duration
from greensched_core.errors import BadInput
from greensched_simulator.scenario.fields import (
    BYTES_EXAMPLE,
    FOLDER,
    NO_LIMIT,
    VARIABLES,
)
from greensched_simulator.scenario.file import Document, FieldPlace, read_document
from greensched_simulator.scenario.known_names import hint
from greensched_simulator.scenario.model import Scenario, place_of
from greensched_simulator.world.scenario_checks import belongs_together
from greensched_simulator.world.scenario_trial import faults_when_made

__all__ = ["Scenario", "load_scenario", "parse_scenario", "schema_of_scenarios"]

_NO_NAMES = ("model_type", "model_attributes_type", "dict_type")  # pydantic's words for no mapping


@dataclass(frozen=True, slots=True)
class ScenarioFault:
    """A fault at one place of a scenario, and its remedy."""

    place: FieldPlace
    reason: str

    @property
    def where(self) -> str:
        """Return the place as `cluster.nodes[0].zone`."""
        parts = "".join(f"[{at}]" if isinstance(at, int) else f".{at}" for at in self.place)
        return parts.removeprefix(".")


def load_scenario(path: Path, variables: Mapping[str, str] | None = None) -> Scenario:
    """Return the scenario in a YAML file, after reading and checking the files that it names.

    `variables` replace `${NAME}` in paths; by default those of the environment. Raises BadInput
    that lists every fault with its place, its line and its remedy.
    """
    document = read_document(path)
    scenario, faults = _checked(
        document, path.parent, os.environ if variables is None else variables
    )
    if scenario is None or faults:
        raise _refusal(str(path), faults, document.lines)
    return scenario


def parse_scenario(
    content: Mapping[str, Any], folder: Path = Path(), variables: Mapping[str, str] | None = None
) -> Scenario:
    """Return the scenario in a mapping, with paths relative to `folder`; raise BadInput."""
    document = Document(dict(content), {}, ())
    scenario, faults = _checked(document, folder, variables or {})
    if scenario is None or faults:
        raise _refusal("the scenario", faults, {})
    return scenario


def schema_of_scenarios() -> dict[str, Any]:
    """Return the JSON schema of scenario files, for editors and other tools.

    Its defaults are as a file would write them.
    """
    found = Scenario.model_json_schema(by_alias=True)
    for part in (found, *found["$defs"].values()):
        for field in part["properties"].values():
            if "default" in field:
                field["default"] = _as_written(field["default"], field)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}


def _as_written(value: Any, field: Mapping[str, Any]) -> Any:
    """Return a default as files write it: durations and byte quantities as text."""
    if isinstance(value, list):
        return [_as_written(each, field["items"]) for each in value]
    kinds = [field, *field.get("oneOf", ())]
    example = next((kind["examples"][0] for kind in kinds if "examples" in kind), None)
    if not isinstance(value, float) or not isinstance(example, str):
        return value
    if example == BYTES_EXAMPLE:
        return f"{value / 2**30:g}Gi"
    return NO_LIMIT if math.isinf(value) else format_duration(value)


def _checked(
    document: Document, folder: Path, variables: Mapping[str, str]
) -> tuple[Scenario | None, list[ScenarioFault]]:
    context = {FOLDER: folder, VARIABLES: variables}
    faults = [
        ScenarioFault(place, "is given twice; keep one of them") for place in document.repeated
    ]
    scenario = None
    content = _with_text_for_names(document.content, (), faults)
    try:
        scenario = Scenario.model_validate(content, context=context)
    except ValidationError as fault:
        faults += [_fault(dict(error)) for error in fault.errors(include_url=False)]
    apart = [*belongs_together(content, context)]
    made = faults_when_made(content, context, [place for place, _ in apart])
    faults += [ScenarioFault(*each) for each in (*apart, *made)]
    return scenario, faults


def _with_text_for_names(raw: Any, place: FieldPlace, faults: list[ScenarioFault]) -> Any:
    """Return `raw` with names that are not text, such as numbers, as text; each is a fault."""
    if isinstance(raw, list):
        return [_with_text_for_names(each, (*place, at), faults) for at, each in enumerate(raw)]
    if not isinstance(raw, dict):
        return raw
    found = {}
    for name, value in raw.items():
        text = name if isinstance(name, str) else json.dumps(name, default=str)
        if not isinstance(name, str):
            faults.append(ScenarioFault((*place, text), _no_text(text)))
        found[text] = _with_text_for_names(value, (*place, text), faults)
    return found


def _no_text(given: str) -> str:
    return f"{given} is not text: write it in quotes, as '{given}'"


def _refusal(what: str, faults: list[ScenarioFault], lines: Mapping[FieldPlace, int]) -> BadInput:
    def line(fault: ScenarioFault) -> int:
        places = (fault.place[:depth] for depth in range(len(fault.place), 0, -1))
        return next((lines[place] for place in places if place in lines), 0)

    listed = [
        f"{fault.where}{f' (line {line(fault)})' if line(fault) else ''}: {_reason(fault)}"
        for fault in sorted(faults, key=line)
    ]
    count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
    return BadInput(f"{what} has {count}:\n  " + "\n  ".join(listed))


def _reason(fault: ScenarioFault) -> str:
    """Return the reason; a list of faults within it is indented further than the faults."""
    return fault.reason.replace("\n", "\n  ")


def _fault(error: dict[str, Any]) -> ScenarioFault:
    """Return a fault that pydantic found, in our words."""
    place = place_of(error["loc"])
    kind, given = str(error["type"]), error.get("input")
    if kind == "missing":
        return ScenarioFault(place, "is missing; it must be given")
    if kind == "extra_forbidden":
        reason = f"is not known here{hint(place)}; docs/scenarios.md has all names"
        return ScenarioFault(place, reason)
    if kind == "string_pattern_mismatch":
        return ScenarioFault(place, f"{given!r} does not fit {error['ctx']['pattern']}")
    if kind == "string_type" and isinstance(given, bool | int | float):
        return ScenarioFault(place, _no_text(json.dumps(given)))
    shown = "" if isinstance(given, dict | list) else f" (given {given!r})"
    if kind in _NO_NAMES:
        return ScenarioFault(place, f"must hold names with values{shown}")
    reason = str(error["msg"]).removeprefix("Value error, ")
    if kind in ("value_error", "one_source"):
        return ScenarioFault(place, reason)
    reason = reason[:1].lower() + reason[1:]
    return ScenarioFault(place, reason.replace("input", "it", 1) + shown)
