"""Asks every extender replica for its decisions on a pod, by the API server's pods/portforward.

Extenders serve their decisions only on loopback. A port-forward costs the API server and a kubelet
one connection each, so one to each replica stays open; each pod then costs one request over it.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import aiohttp
import msgspec

from greensched_core import labels
from greensched_core.clock import Clock
from greensched_core.errors import ApiUnavailable
from greensched_core.kubernetes_api import ApiAccess, ApiClient, ListPage
from greensched_core.objects import ObjectMeta
from greensched_core.port_forward import Forward, forwarding_session, open_forward

_SELECTOR = "app.kubernetes.io/part-of=greensched,app.kubernetes.io/component=extender"
_PORT = 8889
_LISTED_FOR_S = 30.0  # then replicas are listed again, and new ones are found
_MOST_BYTES = 32 * 2**20  # of an answer: five decisions with thousands of nodes each
_OK, _NOT_REMEMBERED = 200, 404


class _PodItem(msgspec.Struct):
    metadata: ObjectMeta


class ExtenderReplicas:
    """All running extenders of a namespace; one that does not answer is skipped this time.

    It is an `AskReplicas` for placements; `close` closes it.
    """

    def __init__(
        self,
        access: ApiAccess,
        api: ApiClient,
        namespace: str,
        clock: Clock,
        *,
        patience_s: float = 5.0,
    ) -> None:
        self._access = access
        self._api = api
        self._namespace = namespace
        self._pods = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods"
        self._clock = clock
        self._patience_s = patience_s
        self._session: aiohttp.ClientSession | None = None
        self._forwards: dict[str, Forward] = {}
        self._turns: dict[str, asyncio.Lock] = {}  # one request at a time to each
        self._ports: dict[str, int] = {}
        self._listed_at = float("-inf")

    async def __call__(self, namespace: str, pod: str) -> Sequence[Mapping[str, Any]]:
        """Return each replica's answer about a pod; raise ApiUnavailable if listing fails.

        A replica that remembers no decision, or does not answer, is left out.
        """
        await self._list()
        path = f"/v1/decisions/{quote(namespace, safe='')}/{quote(pod, safe='')}"
        answers = await asyncio.gather(*(self._ask(replica, path) for replica in self._ports))
        return [answer for answer in answers if answer is not None]

    async def close(self) -> None:
        """Close all port-forwards."""
        for replica in list(self._forwards):
            await self._drop(replica)
        if self._session is not None:
            await self._session.close()

    async def _list(self) -> None:
        now = self._clock.monotonic()
        if now - self._listed_at < _LISTED_FOR_S:
            return
        wanted = {"labelSelector": _SELECTOR, "fieldSelector": "status.phase=Running"}
        try:
            page = msgspec.json.decode(await self._api.get(self._pods, wanted), type=ListPage)
            pods = [msgspec.json.decode(item, type=_PodItem).metadata for item in page.items]
        except msgspec.MsgspecError as fault:
            raise ApiUnavailable(f"the answer is not a list of pods: {fault}") from fault
        self._listed_at = now
        self._ports = {pod.name: _port(pod.annotations or {}) for pod in pods}
        for gone in self._forwards.keys() - self._ports.keys():
            await self._drop(gone)

    async def _ask(self, replica: str, path: str) -> Mapping[str, Any] | None:
        async with self._turns.setdefault(replica, asyncio.Lock()):
            # The other end closes connections that were idle for long: then try a new one.
            for _ in range(2 if replica in self._forwards else 1):
                try:
                    async with asyncio.timeout(self._patience_s):
                        return await self._answer(replica, path)
                except (OSError, TimeoutError, ValueError, aiohttp.ClientError):
                    await self._drop(replica)
                except BaseException:  # such as a cancellation: part of an answer may still arrive
                    await self._drop(replica)
                    raise
        return None

    async def _answer(self, replica: str, path: str) -> Mapping[str, Any] | None:
        if replica not in self._forwards:
            self._forwards[replica] = await self._opened(replica)
        status, body = await self._forwards[replica].get(path)
        if status == _NOT_REMEMBERED:
            return None
        found = json.loads(body)
        if status != _OK or not isinstance(found, dict):
            raise ValueError(f"an extender answered HTTP {status}")
        return found

    async def _opened(self, replica: str) -> Forward:
        if self._session is None:
            self._session = forwarding_session(self._access)
        return await open_forward(
            self._session,
            self._access,
            (self._namespace, replica),
            self._ports[replica],
            most_bytes=_MOST_BYTES,
        )

    async def _drop(self, replica: str) -> None:
        forward = self._forwards.pop(replica, None)
        if forward is not None:
            await forward.close()


def _port(annotations: Mapping[str, str]) -> int:
    text = annotations.get(labels.EXPLAIN_PORT, "")
    return int(text) if text.isascii() and text.isdecimal() else _PORT
