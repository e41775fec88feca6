"""Creates objects on a cluster whose API server may go away for a while, and asks for them."""

import asyncio

from greensched_core.errors import ApiUnavailable
from greensched_core.kubernetes_api import ApiClient

_RETRY_S = 0.5


async def exists(client: ApiClient, path: str) -> bool:
    """Say whether there is an object; raise ApiUnavailable where the server does not say."""
    try:
        await client.get(path)
    except ApiUnavailable as fault:
        if fault.status != 404:
            raise
        return False
    return True


async def create_once(client: ApiClient, path: str, body: bytes) -> None:
    """Create an object; when the server was away and already has it from our last try, all is well.

    Asks again until it answers. Raises ApiUnavailable when it refuses the object (HTTP 4xx).
    """
    is_retry = False
    while True:
        try:
            await client.create(path, body)
            return
        except ApiUnavailable as fault:
            if is_retry and fault.status == 409:
                return
            if fault.status is not None and fault.status < 500 and fault.status != 429:
                raise
        is_retry = True
        await asyncio.sleep(_RETRY_S)
