"""What this process may do, as the API server tells it."""

import msgspec

from greensched_core.errors import ApiUnavailable
from greensched_core.kubernetes_api import ApiClient

REFUSED = (401, 403)
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


class _Status(msgspec.Struct):
    allowed: bool


class _Review(msgspec.Struct):
    status: _Status


async def may(client: ApiClient, verb: str, path: str) -> bool:
    """Tell whether we have the right to do this with what is at a path.

    Where the API server gives no answer nothing speaks against it.
    """
    parts = path.strip("/").split("/")
    group = parts[1] if parts[0] == "apis" else ""
    about = {"group": group, "resource": parts[-1], "verb": verb}
    if "namespaces" in parts[:-1]:
        about["namespace"] = parts[parts.index("namespaces") + 1]
    body = msgspec.json.encode({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": about},
    })  # fmt: skip
    try:
        answer = await client.create(_REVIEWS, body)
        return msgspec.json.decode(answer, type=_Review).status.allowed
    except ApiUnavailable as fault:
        return fault.status not in REFUSED
    except msgspec.DecodeError:  # a proxy's words, say, are none of the API server's
        return True
