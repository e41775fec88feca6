"""The text of policies/…/rules/names.py: the catalogue's names, for code without numpy."""

from collections.abc import Iterable

from greensched_policies.rules.catalogue import (
    BAD_WHEN_RULES,
    CAP_RULES,
    ORDER_RULES,
    PAUSE_RULES,
    SCALE_RULES,
    SLEEP_RULES,
    WHEN_RULES,
    WHERE_RULES,
)

FILE = "policies/greensched_policies/rules/names.py"
_HEAD = '''"""The names of all rules by kind, for code that needs no rule itself, and so no numpy.

Written by `make docs` from catalogue.py; changes by hand are lost.
"""
'''
_TABLES: dict[str, Iterable[str]] = {
    "WHERE_NAMES": WHERE_RULES,
    "WHEN_NAMES": WHEN_RULES,
    "BAD_WHEN_NAMES": BAD_WHEN_RULES,
    "ORDER_NAMES": ORDER_RULES,
    "SLEEP_NAMES": SLEEP_RULES,
    "CAP_NAMES": CAP_RULES,
    "PAUSE_NAMES": PAUSE_RULES,
    "SCALE_NAMES": sorted(SCALE_RULES),
}


def rule_names() -> str:
    """Return the module, formatted."""
    return "\n".join([_HEAD, *(_tuple(table, list(names)) for table, names in _TABLES.items()), ""])


def _tuple(table: str, names: list[str]) -> str:
    if len(names) == 1:
        return f'{table} = ("{names[0]}",)'
    return "\n".join([f"{table} = (", *(f'    "{name}",' for name in names), ")"])
