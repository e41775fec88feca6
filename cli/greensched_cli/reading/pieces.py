"""Reads a cluster part by part: parts that cannot be read are left out, with the reason.

Each part needs a separate right; a user of one namespace has few of them.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from greensched_cli.reading.api_server import missing_right
from greensched_cli.reading.operator_state import ClusterPart
from greensched_core.errors import ApiUnavailable, BadInput
from greensched_core.kubernetes_api import ApiClient

Value = TypeVar("Value")
# What is raised for an object with wrong types, for other data than JSON, and for deep nesting.
UNREADABLE = (BadInput, msgspec.DecodeError, UnicodeDecodeError, RecursionError)
NO_RIGHT = "you have no right to read them"
_NO_LOGIN, _FORBIDDEN, _NOT_FOUND = 401, 403, 404


@dataclass(frozen=True, slots=True)
class Scope:
    """The namespace to read; "" is all."""

    namespace: str

    def path(self, group: str, plural: str) -> str:
        """Return the path that lists objects."""
        where = f"/namespaces/{self.namespace}" if self.namespace else ""
        return f"{group}{where}/{plural}"

    @property
    def text(self) -> str:
        """Return the scope as text."""
        return f"namespace {self.namespace}" if self.namespace else "all namespaces"


@dataclass(slots=True)
class Pieces:
    """Reads parts, and records why some could not be read."""

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
        """Return the results of `read` for each object; if refused, none, and record the reason.

        Raises ApiUnavailable if the API server does not answer or does not accept the login.
        """
        found: list[Value] = []
        try:
            async for raw in self._objects(path, field_selector):
                try:
                    found.append(read(raw))
                except UNREADABLE as fault:
                    self.unread[part] = f"one of them is unreadable: {fault}"
        except ApiUnavailable as fault:
            self.refused(part, fault)
        return found

    async def one(
        self,
        part: ClusterPart,
        path: str,
        read: Callable[[bytes], Value],
        parameters: Mapping[str, str] | None = None,
    ) -> Value | None:
        """Return the result of `read` for an answer; None if there is no such object.

        If refused or unreadable, return None and record the reason. Raises ApiUnavailable if the
        API server does not answer or does not accept the login.
        """
        try:
            return read(await self.client.get(path, parameters))
        except ApiUnavailable as fault:
            if fault.status != _NOT_FOUND:
                self.refused(part, fault)
        except UNREADABLE as fault:
            self.unread[part] = why_unreadable(fault)
        return None

    async def _objects(self, path: str, field_selector: str) -> AsyncIterator[bytes]:
        async for page in self.client.pages(path, field_selector=field_selector):
            for item in page.items:
                yield bytes(item)

    def refused(self, part: ClusterPart, fault: ApiUnavailable) -> None:
        """Record why a part could not be read; raise if there was no answer, or no login."""
        if fault.status is None:
            raise fault
        if fault.status == _NO_LOGIN:
            raise ApiUnavailable(why_unread(fault), fault.status) from fault
        self.unread[part] = why_unread(fault)


def why_unreadable(fault: Exception) -> str:
    """Return why an answer of the API server could not be decoded."""
    return f"the answer is unreadable: {fault}"


def why_unread(fault: ApiUnavailable) -> str:
    """Return why a part could not be read."""
    if fault.status == _NO_LOGIN:
        return missing_right(_NO_LOGIN, "")
    if fault.status == _FORBIDDEN:
        return NO_RIGHT
    if fault.status == _NOT_FOUND:
        return "the API server does not know them: the chart's custom resources are not installed"
    return str(fault)
