"""The user's own cluster, by kubeconfig as kubectl reads it, with faults told in a line."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greensched_core.errors import ApiUnavailable, BadInput
from greensched_core.login_plugins import failing_plugins_raise

if TYPE_CHECKING:
    from greensched_core.kubernetes_api import ApiAccess

PATIENCE_S = 10.0  # with the API server and with the replicas


def core_api(kubeconfig: str | None, context: str | None) -> Any:
    """Return a client of the core API; raise BadInput for a kubeconfig that cannot be used."""
    source = _existing(kubeconfig)
    from kubernetes import client, config

    logging.getLogger("urllib3").setLevel(logging.ERROR)  # or it tells of every attempt
    try:
        with failing_plugins_raise(source):
            api_client = config.new_client_from_config(  # type: ignore[no-untyped-call]  # untyped
                config_file=kubeconfig, context=context
            )
    except BadInput:
        raise
    # No YAML, no mapping, no base64, no certificate: each raises a type of its own.
    except Exception as fault:
        told = " ".join(str(fault).split()) or type(fault).__name__
        raise BadInput(f"kubeconfig {source}: {told}") from fault
    return client.CoreV1Api(api_client)


def api_access(kubeconfig: str | None, context: str | None) -> "ApiAccess":
    """Return the way to the API server; raise BadInput for a kubeconfig that cannot be used."""
    _existing(kubeconfig)
    from greensched_core.kubernetes_api import ApiAccess

    logging.getLogger("urllib3").setLevel(logging.ERROR)
    return ApiAccess.from_kubeconfig(Path(kubeconfig).expanduser() if kubeconfig else None, context)


def usual_namespace(kubeconfig: str | None, context: str | None) -> str:
    """Return the namespace of a context, as kubectl takes it; `default` where it names none."""
    from kubernetes import config

    try:
        contexts, active = config.list_kube_config_contexts(kubeconfig)  # type: ignore[no-untyped-call]  # untyped
        chosen = next((each for each in contexts if each["name"] == context), active)
        return str(chosen.get("context", {}).get("namespace") or "default")
    # No file, no YAML, no mapping: whoever reads it whole says what is wrong.
    except Exception:  # noqa: BLE001 - each raises a type of its own
        return "default"


def _existing(kubeconfig: str | None) -> str:
    """Return which kubeconfig will be read; raise BadInput when there is none to read."""
    if kubeconfig:
        if not Path(kubeconfig).expanduser().exists():
            raise BadInput(f"kubeconfig {kubeconfig} does not exist")
        return kubeconfig
    named = os.environ.get("KUBECONFIG", "")
    paths = [path for path in named.split(os.pathsep) if path]
    if not paths:
        paths = ["~/.kube/config"]
    if any(Path(path).expanduser().exists() for path in paths):
        return named or paths[0]
    if named:
        raise BadInput(f"kubeconfig {named}, which KUBECONFIG names, does not exist")
    raise BadInput("no kubeconfig: set KUBECONFIG or pass --kubeconfig")


@contextmanager
def asking_for(what: str, right: str) -> Iterator[None]:
    """Raise ApiUnavailable, with `what` and the status, when the API server refuses or is away.

    `right` is what one must be allowed for it: "list pods in namespace web".
    """
    from kubernetes.client import ApiException, rest

    try:
        yield
    except ApiException as fault:
        told = refusal(fault, right) or f"{what}: HTTP {fault.status}: {fault.reason}"
        raise ApiUnavailable(told, fault.status) from fault
    except rest.urllib3.exceptions.HTTPError as fault:  # type: ignore[attr-defined]  # passes through
        raise ApiUnavailable(f"{what}: {fault}") from fault


def refusal(fault: Any, right: str) -> str:
    """Return in a sentence which right is missing; "" where it is another fault.

    `fault` is the kubernetes package's ApiException; of a port-forward it has no status, and the
    API server's in its text.
    """
    if fault.status == 403 or "status 403" in str(fault.reason):
        return f"you may not {right}"
    if fault.status == 401 or "status 401" in str(fault.reason):
        return "the API server does not accept your login (401): it may have expired"
    return ""
