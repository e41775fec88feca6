"""What a process makes of the API server's word on its rights, and of no word."""

from __future__ import annotations

import httpx
import pytest

from greensched_core.api_paths import JOBS
from greensched_operator.runtime.rights import may
from tests.operator.annotated_work import api_of, refused


def told(body: bytes) -> httpx.Response:
    return httpx.Response(201, content=body)


@pytest.mark.parametrize(
    ("answer", "has_it"),
    [
        pytest.param(told(b'{"status":{"allowed":true}}'), True, id="allowed"),
        pytest.param(told(b'{"status":{"allowed":false}}'), False, id="not-allowed"),
        pytest.param(refused(403), False, id="refused"),
        pytest.param(refused(503), True, id="server-away"),
        pytest.param(told(b""), True, id="nothing"),
        pytest.param(told(b"<html>"), True, id="a-proxys-page"),
        pytest.param(told(b"[]"), True, id="a-list"),
        pytest.param(told(b"{}"), True, id="no-status"),
        pytest.param(told(b'{"status":null}'), True, id="status-null"),
    ],
)
async def test_only_a_refusal_speaks_against_a_right(answer: httpx.Response, has_it: bool) -> None:
    async with api_of(lambda _: answer) as client:
        assert await may(client, "patch", JOBS) is has_it
