"""Access to the user's cluster, by kubeconfig as kubectl reads it; each fault is one line."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from greensched_core.errors import ApiUnavailable, BadInput
from greensched_core.kubeconfig.files import read_context

if TYPE_CHECKING:
    from greensched_core.kubernetes_api import ApiAccess

PATIENCE_S = 10.0  # timeout of requests to the API server and to replicas


def api_access(kubeconfig: str | None, context: str | None) -> "ApiAccess":
    """Return access to the API server; raise BadInput for an unusable kubeconfig."""
    from greensched_core.kubernetes_api import ApiAccess

    return ApiAccess.from_kubeconfig(_path(kubeconfig), context)


def usual_namespace(kubeconfig: str | None, context: str | None) -> str:
    """Return the namespace of a context, as kubectl does; `default` if it names none."""
    try:
        return read_context(_path(kubeconfig), context).namespace
    except BadInput:  # api_access reports the fault
        return "default"


def named_kubeconfig(kubeconfig: str | None, context: str | None) -> str:
    """Return the kubeconfig's files and context as text; raise BadInput for an unusable one."""
    found = read_context(_path(kubeconfig), context)
    return f"kubeconfig {found.source}, context {found.name}"


def _path(kubeconfig: str | None) -> Path | None:
    return Path(kubeconfig) if kubeconfig else None


@contextmanager
def asking_for(what: str, right: str) -> Iterator[None]:
    """Add `what` to an ApiUnavailable raised in the block, or name the missing right.

    `right` is the right that the request needs: "list pods in namespace web".
    """
    try:
        yield
    except ApiUnavailable as fault:
        message = missing_right(fault.status, right) or f"{what}: {fault}"
        raise ApiUnavailable(message, fault.status) from fault


def missing_right(status: int | None, right: str) -> str:
    """Return a sentence that names the missing right or login; "" if it is another fault."""
    if status == 403:
        return f"you may not {right}"
    if status == 401:
        return "the API server does not accept your login (401): it may have expired"
    return ""
