"""Kubeconfig files for tests."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

Write = Callable[..., Path]
SERVER = "https://127.0.0.1:1"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return a writer of kubeconfigs whose context, cluster and user all have one name."""

    def written(
        name: str = "here",
        *,
        user: dict[str, Any] | None = None,
        cluster: dict[str, Any] | None = None,
        folder: str = ".",
        **others: Any,
    ) -> Path:
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": name,
            "clusters": [{"name": name, "cluster": {"server": SERVER, **(cluster or {})}}],
            "users": [{"name": name, "user": user or {}}],
            "contexts": [{"name": name, "context": {
                "cluster": name, "user": name, "namespace": f"{name}-work"}}],
        }  # fmt: skip
        path = tmp_path / folder / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump({**config, **others}), encoding="utf-8")
        return path

    return written


@pytest.fixture(autouse=True)
def _isolated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide the caller's own cluster and proxies."""
    for name in ("KUBECONFIG", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
