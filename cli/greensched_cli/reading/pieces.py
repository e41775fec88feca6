"""Reads a cluster piece by piece: what cannot be read is told, and left out.

Each piece needs a right of its own; a user of one namespace has few of them.
"""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from greensched_cli.reading.operator_state import ClusterPart
from greensched_core.errors import ApiUnavailable, BadInput
from greensched_core.kubernetes_api import ApiClient

Value = TypeVar("Value")
_FORBIDDEN, _NOT_FOUND = 403, 404


@dataclass(frozen=True, slots=True)
class Scope:
    """Which namespace is looked at; "" is all."""

    namespace: str

    def path(self, group: str, plural: str) -> str:
        """Return where objects are listed."""
        where = f"/namespaces/{self.namespace}" if self.namespace else ""
        return f"{group}{where}/{plural}"

    @property
    def told(self) -> str:
        """Return it in words."""
        return f"namespace {self.namespace}" if self.namespace else "all namespaces"


@dataclass(slots=True)
class Pieces:
    """Reads pieces, and keeps why some could not be."""

    client: ApiClient
    unread: dict[ClusterPart, str] = field(default_factory=dict)

    async def listed(
        self,
        part: ClusterPart,
        path: str,
        read: Callable[[bytes], Value],
        *,
        field_selector: str = "",
    ) -> list[Value]:
        """Return what `read` makes of each object; none, and a reason, where it is refused.

        Raises ApiUnavailable when the API server is not there, or does not know who we are.
        """
        found: list[Value] = []
        try:
            async for raw in self._objects(path, field_selector):
                try:
                    found.append(read(raw))
                except BadInput as fault:
                    self.unread[part] = f"one of them, {fault}"
        except ApiUnavailable as fault:
            self.refused(part, fault)
        return found

    async def _objects(self, path: str, field_selector: str) -> AsyncIterator[bytes]:
        async for page in self.client.pages(path, field_selector=field_selector):
            for item in page.items:
                yield bytes(item)

    def refused(self, part: ClusterPart, fault: ApiUnavailable) -> None:
        """Note why a piece is not known."""
        if fault.status is None or fault.status == 401:
            raise fault
        self.unread[part] = why_unread(fault)


def why_unread(fault: ApiUnavailable) -> str:
    """Say in a few words why a piece is not known."""
    if fault.status == _FORBIDDEN:
        return "you have no right to read them"
    if fault.status == _NOT_FOUND:
        return "the API server does not know them: the chart's custom resources are not installed"
    return str(fault)
