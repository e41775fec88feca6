"""Objects are created although the API server is away or busy for a time; a refusal is told."""

from __future__ import annotations

import httpx
import pytest

from greensched_core.errors import ApiUnavailable
from greensched_testbed.creating import create_once
from tests.operator.annotated_work import api_of, refused

_PATH = "/api/v1/namespaces/day/pods"


@pytest.mark.parametrize(
    "fault",
    [
        refused(503),
        refused(429),
        refused(
            403,
            'pods "job-7" is forbidden: status unknown for quota: the server was unable to return '
            "a response in the time allotted, but may still be processing the request "
            "(get limitranges)",
        ),
    ],
    ids=["away", "too many requests", "admission out of time"],
)
async def test_a_creation_is_tried_again_after_a_passing_fault(fault: httpx.Response) -> None:
    answers = [fault, httpx.Response(201, json={})]
    async with api_of(lambda _: answers.pop(0)) as client:
        await create_once(client, _PATH, b"{}")
    assert not answers


async def test_an_object_that_a_lost_answer_had_created_is_accepted() -> None:
    answers = [refused(503), refused(409)]
    async with api_of(lambda _: answers.pop(0)) as client:
        await create_once(client, _PATH, b"{}")
    assert not answers


@pytest.mark.parametrize("status", [403, 409, 422])
async def test_a_refusal_is_raised_at_once(status: int) -> None:
    answers = [refused(status)]
    async with api_of(lambda _: answers.pop(0)) as client:
        with pytest.raises(ApiUnavailable, match=str(status)):
            await create_once(client, _PATH, b"{}")
