"""Tables of rules, trace formats, meters and providers, from their catalogues."""

import inspect
import re
from collections.abc import Mapping
from typing import cast

import msgspec

from docs.markdown import row, table, with_table
from greensched_core.metering.meters.catalogue import NODE_METERS, POD_METERS
from greensched_operator.providers.catalogue import BY_NAME, Provider
from greensched_operator.providers.secret_keys import LoginRef, TokenRef
from greensched_policies.rules.catalogue import (
    CAP_RULES,
    ORDER_RULES,
    PAUSE_RULES,
    SLEEP_RULES,
    WHEN_RULES,
    WHERE_RULES,
)
from greensched_simulator.formats.traces import FORMATS
from greensched_simulator.policy import QUEUES

_TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)
_SHAPE = re.compile(r",? \[B,\w+\]")


def policies_page(page: str) -> str:
    """Return docs/policies.md with a row for each rule; existing rows stay unchanged."""
    queues = {name: ORDER_RULES[queue.order] for name, queue in QUEUES.items()}
    page = _with_rows(page, "Order", queues, "any that fits", "")
    page = _with_rows(page, "Rules", WHERE_RULES, "")
    page = _with_rows(page, "When", WHEN_RULES, "")
    page = _with_rows(page, "Sleep", SLEEP_RULES, "")
    page = _with_rows(page, "Cap", CAP_RULES, "")
    return _with_rows(page, "Pause", PAUSE_RULES, "")


def _with_rows(page: str, heading: str, rules: Mapping[str, object], *rest: str) -> str:
    """Return a page with rows for the rules that the first table below a heading lacks."""
    before, mark, after = page.partition(f"# {heading}\n")
    found = _TABLE.search(after)
    if found is None:
        raise ValueError(f"no table below {heading}")
    first_cells = " ".join(line.split("|")[1] for line in found[0].splitlines())
    known = re.findall(r"`([^`]+)`", first_cells)
    new = [
        row((f"`{name}`", _what_it_returns(rule), *rest)) + "\n"
        for name, rule in rules.items()
        if name not in known
    ]
    return f"{before}{mark}{after[: found.end()]}{''.join(new)}{after[found.end() :]}"


def _what_it_returns(rule: object) -> str:
    """Return the first sentence of a rule's docstring, without arrays' shapes."""
    sentence = (inspect.getdoc(rule) or "").partition("\n\n")[0].removesuffix(".")
    return _SHAPE.sub("", sentence.removeprefix("Return "))


def traces_page(page: str) -> str:
    """Return docs/traces.md with the table of formats."""
    rows = ((each.about, each.layout or f"`{','.join(each.columns)}`") for each in FORMATS)
    return with_table(page, "formats", table(("format", "columns"), rows))


def power_page(page: str) -> str:
    """Return docs/power.md with the table of meters of nodes."""
    rows = (
        (str(place), f"`{each.source}`", each.about, "yes" if each.sees_gpus else "no")
        for place, each in enumerate(NODE_METERS, start=1)
    )
    head = ("order", "meter", "what it reads", "sees GPUs")
    return with_table(page, "meters", table(head, rows))


def ledger_meters(page: str) -> str:
    """Return docs/ledger.md with the table of meters of pods."""
    rows = (
        (str(place), f"`{each.name}`", each.about, "yes" if each.sees_gpus else "no")
        for place, each in enumerate(POD_METERS, start=1)
    )
    head = ("order", "meter", "what it reads and what that contains", "for work with GPUs")
    return with_table(page, "meters", table(head, rows))


def signals_page(page: str) -> str:
    """Return docs/signals.md with the table of providers."""
    rows = (
        (f"`{name}`", " and ".join(each.serves), _promise(each), _key(each))
        for name, each in BY_NAME.items()
    )
    head = ("provider", "signal", "what it gives", "key")
    return with_table(page, "providers", table(head, rows))


def _promise(provider: type[Provider]) -> str:
    return (inspect.getdoc(provider) or "").partition("\n\n")[0].removesuffix(".")


def _key(provider: type[Provider]) -> str:
    """Return which key a provider needs, by its field `secret_ref`."""
    words: dict[object, str] = {
        TokenRef: "token",
        LoginRef: "user and password",
        TokenRef | None: "optional token",
    }
    fields = msgspec.structs.fields(cast(type[msgspec.Struct], provider))
    asked = [each.type for each in fields if each.name == "secret_ref"]
    return words[asked[0]] if asked else "none"
