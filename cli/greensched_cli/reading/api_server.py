"""The user's own cluster, by kubeconfig as kubectl reads it, with faults told in a line."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from greensched_core.errors import ApiUnavailable, BadInput
from greensched_core.kubeconfig.files import read_context

if TYPE_CHECKING:
    from greensched_core.kubernetes_api import ApiAccess

PATIENCE_S = 10.0  # with the API server and with the replicas


def api_access(kubeconfig: str | None, context: str | None) -> "ApiAccess":
    """Return the way to the API server; raise BadInput for a kubeconfig that cannot be used."""
    from greensched_core.kubernetes_api import ApiAccess

    return ApiAccess.from_kubeconfig(_path(kubeconfig), context)


def usual_namespace(kubeconfig: str | None, context: str | None) -> str:
    """Return the namespace of a context, as kubectl takes it; `default` where it names none."""
    try:
        return read_context(_path(kubeconfig), context).namespace
    except BadInput:  # whoever reads it whole says what is wrong
        return "default"


def _path(kubeconfig: str | None) -> Path | None:
    return Path(kubeconfig) if kubeconfig else None


@contextmanager
def asking_for(what: str, right: str) -> Iterator[None]:
    """Raise ApiUnavailable, with `what`, when the API server refuses or is away.

    `right` is what one must be allowed for it: "list pods in namespace web".
    """
    try:
        yield
    except ApiUnavailable as fault:
        told = missing_right(fault.status, right) or f"{what}: {fault}"
        raise ApiUnavailable(told, fault.status) from fault


def missing_right(status: int | None, right: str) -> str:
    """Return in a sentence which right is missing; "" where the status tells of another fault."""
    if status == 403:
        return f"you may not {right}"
    if status == 401:
        return "the API server does not accept your login (401): it may have expired"
    return ""
