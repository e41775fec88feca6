"""The runs of pods that meters are asked about."""

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
    node: Node | None = None  # None: not known, and what goes by its curve cannot be told


def any_of(names: Iterable[str]) -> str:
    """Return the regular expression of names of Kubernetes: letters, digits, `-` and `.`."""
    return "|".join(name.replace(".", "[.]") for name in names)
