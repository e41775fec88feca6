"""Tables of rules, trace formats, meters and providers, from their catalogues."""

import inspect
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple, cast

import msgspec

from docs.markdown import table, with_table
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

_SHAPE = re.compile(r",? \[B,\w+\]")
_SOURCE = re.compile(r"^Source: (.*?)\.?$", re.MULTILINE)
_SENTENCE = re.compile(r"(.*?)\.(?:\s|$)", re.DOTALL)


class _Discipline(NamedTuple):
    """Which job may pass one that finds no room; and what the order's rule does not say."""

    passing: str
    source: str = ""
    order: str = ""


_DISCIPLINES = {
    "oldest-fit": _Discipline("any that fits", "kube-scheduler", "when the start came due"),
    "any-fit": _Discipline("any that fits"),
    "strict-order": _Discipline("none"),
    "easy": _Discipline(
        "any that is not expected to delay the first one", "Lifka (EASY), JSSPP 1995"
    ),
    "provisioned": _Discipline(
        "none; and no job starts beyond the quota of cores that applies at that moment",
        "Lechowicz et al. (CAP), arXiv 2502.09717",
    ),
    "together": _Discipline(
        "any that fits; all are placed together", "Hu, de Laat and Zhao (ECSched), FGCS 2020"
    ),
}


def policies_page(page: str) -> str:
    """Return docs/policies.md with the tables of rules, and of the simulator's queues."""
    for name, column, rules in (
        ("where rules", "relative cost", WHERE_RULES),
        ("when rules", "cost of each start", WHEN_RULES),
        ("sleep rules", "stays awake for", SLEEP_RULES),
        ("cap rules", "cost of each power cap", CAP_RULES),
        ("pause rules", "cost of resuming", PAUSE_RULES),
    ):
        page = with_table(page, name, table(("name", column, "source"), rule_rows(rules)))
    head = (
        "queue",
        "order, the least first",
        "which job may pass one that finds no room",
        "source",
    )
    return with_table(page, "queues", table(head, _queue_rows()))


def rule_rows(rules: Mapping[str, object]) -> Iterator[tuple[str, str, str]]:
    """Return name, result and source of each rule, by its docstring."""
    return ((f"`{name}`", result_of(rule), source_of(rule)) for name, rule in rules.items())


def _queue_rows() -> Iterator[tuple[str, ...]]:
    for name, queue in QUEUES.items():
        rule, discipline = ORDER_RULES[queue.order], _DISCIPLINES[queue.discipline]
        order = discipline.order or result_of(rule)
        yield f"`{name}`", order, discipline.passing, discipline.source or source_of(rule)


def result_of(rule: object) -> str:
    """Return the first sentence of a rule's docstring, without `Return` and arrays' shapes."""
    text = inspect.getdoc(rule) or ""
    sentence = _SENTENCE.match(text)
    return _SHAPE.sub("", (sentence[1] if sentence else text).removeprefix("Return "))


def source_of(rule: object) -> str:
    """Return what follows `Source:` in a rule's docstring; without it, the rule is ours."""
    found = _SOURCE.search(inspect.getdoc(rule) or "")
    return found[1] if found else "this project"


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
