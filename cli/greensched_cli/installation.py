"""The command that adds an extra to this installation, from where the package came from.

The package is on no index: there, its bare name could be somebody else's package.
"""

import json
import shlex
from importlib.metadata import PackageNotFoundError, distribution
from urllib.parse import urlsplit
from urllib.request import url2pathname


def install_command(extra: str) -> str:
    """Return the command that adds an extra, from the same checkout, wheel or address."""
    try:
        origin = distribution("greensched").read_text("direct_url.json")
    except PackageNotFoundError:  # such as in an image, which holds copied files
        origin = None
    return command_for(extra, origin)


def command_for(extra: str, origin: str | None) -> str:
    """Return the command that adds an extra.

    `origin` is the text of direct_url.json (PEP 610), None for a package from an index.
    """
    name = f"greensched[{extra}]"
    if origin is None:
        return f"pip install {shlex.quote(name)}"
    came = json.loads(origin)
    url = came["url"]
    if "dir_info" in came:
        folder = f"{url2pathname(urlsplit(url).path)}[{extra}]"
        option = "-e " if came["dir_info"].get("editable") else ""
        return f"pip install {option}{shlex.quote(folder)}"
    if "vcs_info" in came:
        url = f"{came['vcs_info']['vcs']}+{url}@{came['vcs_info']['commit_id']}"
    return f"pip install {shlex.quote(f'{name} @ {url}')}"
