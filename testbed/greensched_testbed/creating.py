"""Creates and looks up objects while the API server may be away for a time."""

import asyncio

from greensched_core.errors import ApiUnavailable
from greensched_core.kubernetes_api import ApiClient

_RETRY_S = 0.5
_OUT_OF_TIME = "unable to return a response in the time allotted"  # Kubernetes' NewTimeoutError


async def exists(client: ApiClient, path: str) -> bool:
    """Return whether an object exists; raise ApiUnavailable if the server does not answer."""
    try:
        await client.get(path)
    except ApiUnavailable as fault:
        if fault.status != 404:
            raise
        return False
    return True


async def create_once(client: ApiClient, path: str, body: bytes) -> None:
    """Create an object; retry until the server answers.

    An object that an earlier try created is accepted. Raises ApiUnavailable if the server refuses
    the object (HTTP 4xx). A busy server whose admission cannot read in time what it checks also
    answers 403; that is no refusal.
    """
    is_retry = False
    while True:
        try:
            await client.create(path, body)
            return
        except ApiUnavailable as fault:
            if is_retry and fault.status == 409:
                return
            is_refused = fault.status is not None and fault.status < 500 and fault.status != 429
            if is_refused and _OUT_OF_TIME not in str(fault):
                raise
        is_retry = True
        await asyncio.sleep(_RETRY_S)
