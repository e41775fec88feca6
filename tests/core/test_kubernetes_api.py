from pathlib import Path
from typing import Any

import pytest

from greensched_core.errors import ApiUnavailable, BadInput, ResourceExpired
from greensched_core.kubernetes_api import ApiAccess

Api = Any  # the scripted server of conftest.py


async def test_a_list_is_followed_page_by_page(scripted: Api) -> None:
    scripted.page({"a": 1}, more="next")
    scripted.page({"a": 2}, version="9")
    async with scripted.client() as client:
        pages = [page async for page in client.pages("/api/v1/pods", field_selector="x=y")]
    assert [bytes(item) for page in pages for item in page.items] == [b'{"a": 1}', b'{"a": 2}']
    assert [query.get("continue") for _, _, query in scripted.asked] == [None, "next"]
    assert all(query["fieldSelector"] == "x=y" for _, _, query in scripted.asked)


async def test_the_token_is_asked_for_and_sent(scripted: Api) -> None:
    scripted.page()
    async with scripted.client(token="secret") as client:
        await client.get("/version")
    assert scripted.headers[0]["authorization"] == "Bearer secret"


@pytest.mark.parametrize(("status", "kind"), [(403, ApiUnavailable), (410, ResourceExpired)])
async def test_a_refusal_says_what_the_server_said(
    scripted: Api, status: int, kind: type[ApiUnavailable]
) -> None:
    scripted.refuse(status, "pods is forbidden")
    async with scripted.client() as client:
        with pytest.raises(kind, match=r"GET /api/v1/pods: HTTP \d+: pods is forbidden") as raised:
            await client.get("/api/v1/pods")
    assert raised.value.status == status


async def test_a_page_that_is_no_list_is_unavailable_not_a_crash(scripted: Api) -> None:
    scripted.answer(b"<html>")
    async with scripted.client() as client:
        with pytest.raises(ApiUnavailable, match="not a list"):
            async for _ in client.pages("/api/v1/pods"):
                pass


async def test_nobody_listening_is_unavailable(scripted: Api) -> None:
    scripted.port = 1
    async with scripted.client() as client:
        with pytest.raises(ApiUnavailable, match="GET /version"):
            await client.get("/version")


async def test_a_silent_watch_ends(scripted: Api) -> None:
    scripted.stream({"type": "BOOKMARK", "object": {}}, hang_s=5)
    async with scripted.client() as client:
        with pytest.raises(ApiUnavailable, match="watch"):
            async with client.watch("/api/v1/pods", "1", silence_s=0.05) as events:
                assert len([line async for line in events]) == 1


async def test_lines_of_a_watch_may_be_torn_apart(scripted: Api) -> None:
    scripted.stream(b'{"a":1}', b"", b'{"b":"' + b"x" * 200_000 + b'"}')
    async with scripted.client() as client:
        async with client.watch("/api/v1/pods", "7") as events:
            lines = [line async for line in events]
    assert [len(line) for line in lines] == [7, 200_008]
    assert scripted.asked[0][2]["resourceVersion"] == "7"
    assert scripted.asked[0][2]["allowWatchBookmarks"] == "true"


def test_outside_a_cluster_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(BadInput, match="name a kubeconfig"):
        ApiAccess.in_cluster(tmp_path)


def test_a_kubeconfig_that_is_absent_says_so(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="kubeconfig"):
        ApiAccess.from_kubeconfig(tmp_path / "absent")


CONFIG = """
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: "https://127.0.0.1:1", CLUSTER}}]
users: [{name: u, user: {USER}}]
"""


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{", id="no-yaml"),
        pytest.param("[1, 2]", id="a-list"),
        pytest.param("", id="empty"),
        pytest.param(
            CONFIG.replace(", CLUSTER", ", certificate-authority: /no/ca.crt"), id="no-ca"
        ),
        pytest.param(CONFIG.replace("CLUSTER", "certificate-authority-data: AAAA"), id="bad-ca"),
        pytest.param(CONFIG.replace("CLUSTER", 'certificate-authority-data: "A"'), id="no-base64"),
        pytest.param(
            CONFIG.replace(", CLUSTER", "").replace("USER", "client-certificate-data: AAAA"),
            id="bad-client",
        ),
    ],
)
def test_a_kubeconfig_that_is_wrong_is_a_sentence_not_a_traceback(
    tmp_path: Path, text: str
) -> None:
    file = tmp_path / "config"
    file.write_text(text.replace("USER", ""))
    with pytest.raises(BadInput, match="kubeconfig .*config: ."):
        ApiAccess.from_kubeconfig(file)


def test_the_token_of_a_kubeconfig_is_what_proves_who_we_are(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(CONFIG.replace(", CLUSTER", "").replace("USER", "token: secret"))
    assert ApiAccess.from_kubeconfig(file).bearer_token() == "secret"


def test_an_authority_of_the_cluster_that_is_none_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    (tmp_path / "token").write_text("t")
    (tmp_path / "ca.crt").write_text("nothing")
    with pytest.raises(BadInput, match=r"ca\.crt holds no certificate"):
        ApiAccess.in_cluster(tmp_path)
