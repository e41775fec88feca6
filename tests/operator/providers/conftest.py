"""Conversations with providers, with replies written by hand."""

import pytest

from greensched_operator.providers.answers import (
    Answer,
    Conversation,
    ProviderFault,
    Reply,
    Request,
)
from tests.operator.providers.fixture_types import Talk


@pytest.fixture(scope="session")
def talk() -> Talk:
    """Return a function that answers a conversation: bytes mean 200, a fault is thrown."""

    def lead(
        conversation: Conversation, *replies: bytes | Reply | ProviderFault
    ) -> tuple[Answer, list[Request]]:
        asked: list[Request] = []
        left = list(replies)
        try:
            asked.append(next(conversation))
            while True:
                reply = left.pop(0)
                if isinstance(reply, ProviderFault):
                    asked.append(conversation.throw(reply))
                else:
                    whole = Reply(200, reply) if isinstance(reply, bytes) else reply
                    asked.append(conversation.send(whole))
        except StopIteration as returned:
            assert left == [], "not all replies were asked for"
            return returned.value, asked

    return lead
