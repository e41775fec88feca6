"""Which packages each extra installs, and the error if one is missing.

The verbs for a cluster need only the extra `cli`; each other verb declares what it needs.
"""

import re
from collections.abc import Callable
from functools import wraps
from importlib.metadata import requires
from importlib.util import find_spec
from typing import ParamSpec, TypeVar

from greensched_core.errors import BadInput

Given = ParamSpec("Given")
Answer = TypeVar("Answer")

_MOST_NAMED = 3  # missing packages
_SIMULATOR = ("matplotlib", "numba", "numpy", "onnxruntime", "plotly", "pyarrow", "scipy")
# Packages to look for; the rest of an extra is installed with them.
BROUGHT: dict[str, tuple[str, ...]] = {
    "policies": ("numpy", "onnxruntime"),
    "report": ("plotly", "pyarrow", "sqlalchemy"),
    "simulator": _SIMULATOR,
    "train": (*_SIMULATOR, "onnx"),
    "testbed": (*_SIMULATOR, "cryptography", "duckdb", "fastapi", "kopf", "psutil", "sqlalchemy"),
}


def require(extra: str, what: str) -> None:
    """Raise BadInput, with the command that installs it, if an extra is not installed.

    `what` names the option or verb that needs it: "--out", "greensched simulate".
    """
    missing = [name for name in BROUGHT[extra] if find_spec(name) is None]
    if missing:
        from greensched_cli.installation import install_command

        more = ", …" if len(missing) > _MOST_NAMED else ""
        named = ", ".join(missing[:_MOST_NAMED]) + more
        raise BadInput(
            f"{what} needs packages that are missing ({named}): {install_command(extra)}"
        )


def extra_with(module: str) -> str:
    """Return the lightest extra that installs a module's package; `all` if none names it."""
    package = re.escape(module.partition(".")[0].replace("_", "-"))
    lines = requires("greensched") or ()
    for extra in ("cli", "oidc", *BROUGHT):
        if any(re.match(rf"{package}\b[^;]*; extra == .{extra}.$", line) for line in lines):
            return extra
    return "all"


def needs(extra: str, what: str) -> Callable[[Callable[Given, Answer]], Callable[Given, Answer]]:
    """Return a decorator for verbs that need an extra: they raise BadInput if it is missing."""

    def decorate(verb: Callable[Given, Answer]) -> Callable[Given, Answer]:
        @wraps(verb)
        def checked(*args: Given.args, **kwargs: Given.kwargs) -> Answer:
            require(extra, what)
            return verb(*args, **kwargs)

        return checked

    return decorate
