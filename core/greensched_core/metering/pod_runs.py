"""Runs of pods whose energy is looked up."""

from collections.abc import Iterable
from dataclasses import dataclass

from greensched_core.state import Node


@dataclass(frozen=True, slots=True)
class PodRun:
    """One pod, from its start to its end."""

    uid: str
    namespace: str
    name: str
    begin_s: float  # seconds since the Unix epoch
    until_s: float
    node: Node | None = None  # None: unknown, so estimates by its curve are not possible


def any_of(names: Iterable[str]) -> str:
    """Return a regular expression of Kubernetes names (letters, digits, `-` and `.`)."""
    return "|".join(name.replace(".", "[.]") for name in names)
