"""Port-forwards to pods through the API server, and requests over them.

They reach ports that listen on a pod's loopback only. They need permission to `create` and `get`
pods/portforward.
"""

from urllib.parse import quote

import aiohttp
import httptools

from greensched_core.kubernetes_api import ApiAccess

_PROTOCOL = "v4.channel.k8s.io"
_DATA, _ERROR = 0, 1  # channels of the only port; each starts with a frame of the port number
_PORT_FRAME_BYTES = 2
_MOST_FRAME_BYTES = 32 * 2**20
_FAREWELL_S = 0.5  # a slower close is cut off


class Forward:
    """An open port-forward to one port of one pod, for one request at a time."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, most_bytes: int) -> None:
        """`most_bytes` limits the body of an answer."""
        self._socket = socket
        self._most_bytes = most_bytes
        self._begun: set[int] = set()

    async def get(self, path: str) -> tuple[int, bytes]:
        """GET `path`; return status and body. Raises OSError or ValueError if it breaks."""
        request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n\r\n"
        await self._socket.send_bytes(bytes([_DATA]) + request.encode("ascii"))
        answer = _Answer(self._most_bytes)
        parser = httptools.HttpResponseParser(answer)
        while not answer.is_whole:
            try:
                parser.feed_data(await self._piece())
            except httptools.HttpParserError as fault:
                raise ValueError(
                    f"the answer over the port-forward is not HTTP: {fault}"
                ) from fault
        return parser.get_status_code(), bytes(answer.body)

    async def close(self) -> None:
        """Close the port-forward."""
        await self._socket.close()

    async def _piece(self) -> bytes:
        while True:
            message = await self._socket.receive()
            if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
                raise ConnectionError(f"the port-forward ended: {message.type.name}")
            channel, piece = message.data[0], bytes(message.data[1:])
            if channel not in self._begun and len(piece) == _PORT_FRAME_BYTES:
                self._begun.add(channel)
            elif channel == _ERROR:
                raise ConnectionError(f"the port-forward failed: {piece.decode(errors='replace')}")
            else:
                return piece


class _Answer:
    """An HTTP/1.1 response that arrives in pieces."""

    def __init__(self, most_bytes: int) -> None:
        self.body = bytearray()
        self.is_whole = False
        self._most_bytes = most_bytes

    def on_body(self, body: bytes) -> None:
        """Add a piece of the body."""
        self.body += body
        if len(self.body) > self._most_bytes:
            raise ValueError("the answer is too long")

    def on_message_complete(self) -> None:
        """Note that the response is complete."""
        self.is_whole = True


def forwarding_session(access: ApiAccess) -> aiohttp.ClientSession:
    """Return a session for port-forwards; call it inside the running loop."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=access.verify), proxy=access.proxy
    )


async def open_forward(
    session: aiohttp.ClientSession,
    access: ApiAccess,
    pod: tuple[str, str],
    port: int,
    *,
    most_bytes: int,
) -> Forward:
    """Return a port-forward to a port of a pod, given by namespace and name.

    Raises aiohttp.ClientError if it fails; a refusal is an aiohttp.WSServerHandshakeError with its
    status.
    """
    namespace, name = (quote(each, safe="") for each in pod)
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/portforward?ports={port}"
    token = access.bearer_token()
    socket = await session.ws_connect(
        access.base_url.rstrip("/") + path,
        protocols=(_PROTOCOL,),
        headers={"Authorization": f"Bearer {token}"} if token else {},
        max_msg_size=_MOST_FRAME_BYTES,
        timeout=aiohttp.ClientWSTimeout(ws_close=_FAREWELL_S),
    )
    return Forward(socket, most_bytes)
