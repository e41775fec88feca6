"""A stand-in for an extender's explain routes, and the command in a process of its own."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
Replica = Callable[[dict[str, Any]], str]


@pytest.fixture
def greensched() -> Run:
    """Runs `greensched` with these arguments, without the caller's own cluster and settings."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name != "KUBECONFIG" and not name.startswith("GREENSCHED_")
    }

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "greensched_cli", *arguments],
            env={**inherited, **variables},
            capture_output=True, text=True, check=False,
            timeout=600,  # two minutes, and the simulator's engine is compiled once
        )  # fmt: skip

    return run


@pytest.fixture
def replica() -> Iterator[Replica]:
    """Serves JSON by path, 404 for all others; returns the address."""
    servers: list[ThreadingHTTPServer] = []

    def serve(answers: dict[str, Any]) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = json.dumps(answers.get(self.path, {"error": "not here"})).encode()
                self.send_response(200 if self.path in answers else 404)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                return

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}"

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def decision() -> dict[str, Any]:
    """One decision as an extender tells it."""
    zones = [("ZZ-CLEAN", 50.0), ("ZZ-DIRTY", 500.0)]
    return {
        "pod": {
            "namespace": "default", "name": "web", "uid": "u", "cpuCores": 4.0,
            "memoryBytes": 2**30, "gpus": 0.0, "runtimeSeconds": 3600.0,
            "runtimeIsDefault": False, "faults": [],
        },
        "decidedAt": 1_800_000_000.0, "policy": "onnx", "bundle": "prior", "fallbackReason": None,
        "weights": {"energy": 1.0, "carbon": 1.0, "performance": 0.1},
        "why": "clean was the cheapest of 2.",
        "snapshotAgeSeconds": 0.1, "offered": 2, "unknownNodes": {"count": 0, "some": []},
        "zones": [
            {
                "zone": zone, "carbonGramsPerKwh": carbon, "carbonFrom": "grid-signal",
                "carbonAgeSeconds": 60.0, "pricePerMwh": 80.0, "priceFrom": "grid-signal",
                "priceAgeSeconds": 60.0, "currency": "EUR",
            }
            for zone, carbon in zones
        ],
        "expectedNode": "clean", "outcome": {"state": "bound", "node": "clean", "boundAt": 1.0},
        "candidates": [
            {
                "node": name, "zone": zone, "score": score, "relativeCost": relative,
                "powerWatts": 20.0, "runtimeSeconds": 3600.0, "energyJoules": 72_000.0,
                "carbonGrams": 0.02 * carbon, "cost": 0.0016, "currency": "EUR",
            }
            for (zone, carbon), name, score, relative in zip(
                zones, ("clean", "dirty"), (10, 0), (0.6, 1.4), strict=True
            )
        ],
    }  # fmt: skip
