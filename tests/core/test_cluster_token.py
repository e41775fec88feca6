"""The token of a pod in a cluster, which the kubelet replaces about every hour."""

import time
from pathlib import Path

import pytest

from greensched_core.errors import ApiUnavailable
from greensched_core.kubernetes_api import ApiAccess
from greensched_testbed.certificates import Authority


@pytest.fixture
def mounted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A service account's folder, as the kubelet mounts it; the clock stands at 1,000 s."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setattr(time, "monotonic", lambda: 1_000.0)
    Authority(tmp_path)  # writes ca.crt
    (tmp_path / "token").write_text("first\n")
    return tmp_path


@pytest.mark.parametrize(
    ("after_s", "token"),
    [pytest.param(60.0, "first", id="kept-a-minute"), pytest.param(60.1, "second", id="read-anew")],
)
def test_a_token_that_was_replaced_is_taken_up_within_a_minute(
    mounted: Path, monkeypatch: pytest.MonkeyPatch, after_s: float, token: str
) -> None:
    access = ApiAccess.in_cluster(mounted)
    assert access.bearer_token() == "first"
    (mounted / "token").write_text("second\n")
    monkeypatch.setattr(time, "monotonic", lambda: 1_000.0 + after_s)
    assert access.bearer_token() == token


def test_while_the_token_cannot_be_read_the_last_one_serves_and_each_request_looks_again(
    mounted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    access = ApiAccess.in_cluster(mounted)
    access.bearer_token()
    (mounted / "token").unlink()
    monkeypatch.setattr(time, "monotonic", lambda: 1_100.0)
    assert access.bearer_token() == "first"
    (mounted / "token").write_text("second")
    assert access.bearer_token() == "second"


def test_without_any_token_there_is_no_way_to_the_server(mounted: Path) -> None:
    access = ApiAccess.in_cluster(mounted)
    (mounted / "token").unlink()
    with pytest.raises(ApiUnavailable, match="token"):
        access.bearer_token()
