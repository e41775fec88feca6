"""An API server whose objects are not what they should be: a line for each part, no traceback."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from greensched_cli.reading.operator_state import ClusterPart
from tests.cli.stand_in_server import answering

Run = Callable[..., Any]
WORK = ("/jobs", "/pods")  # lists of these are empty
ODD = {"metadata": 5, "spec": 5, "status": 5, "webhooks": 5}
CONFIG = """
current-context: odd
clusters: [{{name: odd, cluster: {{server: "{address}"}}}}]
contexts: [{{name: odd, context: {{cluster: odd, namespace: team}}}}]
"""


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[str]:
    """The kubeconfig of a server that has no work, and of all else objects with wrong types."""

    def odd(address: str) -> bytes:
        path, _, query = address.partition("?")
        is_empty = path.endswith(WORK) and "labelSelector" not in query
        return json.dumps({**ODD, "metadata": {}, "items": [] if is_empty else [ODD]}).encode()

    with answering(odd) as address:
        path = tmp_path / "config"
        path.write_text(CONFIG.format(address=address))
        yield str(path)


@pytest.mark.parametrize("more", [(), ("--install-namespace", "green")], ids=["any", "named"])
def test_parts_that_cannot_be_decoded_are_named_with_the_reason(
    greensched: Run, kubeconfig: str, more: tuple[str, ...]
) -> None:
    done = greensched("status", "-o", "json", "--kubeconfig", kubeconfig, *more)
    assert (done.returncode, done.stderr) == (0, "")
    unread = json.loads(done.stdout)["unread"]
    assert unread.keys() == {
        ClusterPart.LEASE, ClusterPart.RELEASER, ClusterPart.HEARTBEAT, ClusterPart.WEBHOOK,
        ClusterPart.SIGNALS,
    }  # fmt: skip
    assert all("unreadable: " in why for why in unread.values()), unread
