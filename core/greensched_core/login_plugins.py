"""Login plugins of a kubeconfig (`users[].user.exec`): one that fails is told, and ends the try.

The kubernetes package writes the fault to the root logger and goes on without a login, so that the
API server then refuses an anonymous user for a reason that has nothing to do with it.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from greensched_core.errors import BadInput


class _Heard(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.faults: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.module == "kube_config":
            self.faults.append(" ".join(record.getMessage().split()))


@contextmanager
def failing_plugins_raise(kubeconfig: str) -> Iterator[None]:
    """Raise BadInput when the kubernetes package reports a login plugin that failed meanwhile."""
    root, heard = logging.getLogger(), _Heard()
    root.addHandler(heard)
    try:
        yield
    finally:
        root.removeHandler(heard)
    if heard.faults:
        raise BadInput(
            f"kubeconfig {kubeconfig}: its login plugin failed: {'; '.join(heard.faults)}. "
            "Log in again, or see what the plugin prints by itself"
        )
