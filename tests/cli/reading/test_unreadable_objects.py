"""An API server whose objects are not what they should be: a line for each part, no traceback."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from greensched_cli.reading.operator_state import ClusterPart

Run = Callable[..., Any]
WORK = ("/jobs", "/pods")  # lists of these are empty
ODD = {"metadata": 5, "spec": 5, "status": 5, "webhooks": 5}
CONFIG = """
current-context: odd
clusters: [{{name: odd, cluster: {{server: "http://127.0.0.1:{port}"}}}}]
contexts: [{{name: odd, context: {{cluster: odd, namespace: team}}}}]
"""


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[str]:
    """The kubeconfig of a server that has no work, and of all else objects with wrong types."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            is_empty = path.endswith(WORK) and "labelSelector" not in query
            page = {**ODD, "metadata": {}, "items": [] if is_empty else [ODD]}
            body = json.dumps(page).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        path = tmp_path / "config"
        path.write_text(CONFIG.format(port=server.server_port))
        yield str(path)
        server.shutdown()


@pytest.mark.parametrize("more", [(), ("--operator-namespace", "green")], ids=["any", "named"])
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
