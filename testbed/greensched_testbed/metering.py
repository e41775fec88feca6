"""Runs a real Prometheus server that scrapes metrics pages of our own."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self

import httpx
import yaml

from greensched_testbed.binaries import prometheus_program
from greensched_testbed.ports import free_port
from greensched_testbed.processes import ManagedProcess, start_process

_READY_S = 90.0  # takes a second on an idle machine

Page = Callable[[], str]


@dataclass
class Exporter:
    """An HTTP server with a page for each meter; pages may change while it runs."""

    pages: dict[str, Page]
    port: int = field(default_factory=free_port)

    def __enter__(self) -> Self:
        pages = self.pages

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = pages[self.path.strip("/")]().encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self._serving = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._serving.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._serving.join()


@dataclass
class Prometheus:
    """A Prometheus server that scrapes all pages of an exporter; `url` is set at its start."""

    exporter: Exporter
    folder: Path
    scrape_interval: str = "1s"
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # of targets, by page
    url: str = ""

    def __enter__(self) -> Self:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        jobs = [self._job(page) for page in self.exporter.pages]
        config = {"global": {"scrape_interval": self.scrape_interval}, "scrape_configs": jobs}
        (self.folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        self._process: ManagedProcess = start_process(
            "prometheus",
            self._command(port),
            self.folder / "prometheus.log",
            folder=self.folder,
        )
        try:
            with httpx.Client(timeout=2.0, trust_env=False) as probe:
                self._process.wait_until(lambda: self._answers(probe), "/-/ready", _READY_S)
        except BaseException:
            self._process.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stop()

    def _job(self, page: str) -> dict[str, object]:
        target = {
            "targets": [f"127.0.0.1:{self.exporter.port}"],
            "labels": dict(self.labels.get(page, {})),
        }
        return {"job_name": page, "metrics_path": f"/{page}", "static_configs": [target]}

    def _command(self, port: int) -> Sequence[str | Path]:
        return [
            prometheus_program(),
            f"--config.file={self.folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={self.folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ]

    def _answers(self, probe: httpx.Client) -> bool:
        try:
            return probe.get(f"{self.url}/-/ready").status_code == 200
        except httpx.HTTPError:
            return False
