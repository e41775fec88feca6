"""Rights of this process, as the API server reports them."""

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
    """Return whether this process has the right to use a verb on the resource at a path.

    If the API server gives no answer, the right is assumed.
    """
    parts = path.strip("/").split("/")
    group = parts[1] if parts[0] == "apis" else ""
    attributes = {"group": group, "resource": parts[-1], "verb": verb}
    if "namespaces" in parts[:-1]:
        attributes["namespace"] = parts[parts.index("namespaces") + 1]
    body = msgspec.json.encode({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    })  # fmt: skip
    try:
        answer = await client.create(_REVIEWS, body)
        return msgspec.json.decode(answer, type=_Review).status.allowed
    except ApiUnavailable as fault:
        return fault.status not in REFUSED
    except msgspec.DecodeError:  # not the API server's answer but, for example, a proxy's
        return True
