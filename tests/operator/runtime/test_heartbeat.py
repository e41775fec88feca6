"""Who is heard of, on clocks that stop, run ahead and differ; and who was, by his own word."""

from __future__ import annotations

import json

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_core import labels
from greensched_core.clock import ManualClock
from greensched_core.errors import ApiUnavailable
from greensched_operator.runtime.heartbeat import (
    BEATS_EVERY_S,
    HEARD_WITHIN_S,
    LISTENS_S,
    Heartbeat,
    LeaseHeartbeat,
    RightToStart,
    decode_lease,
    speed_note,
)
from greensched_operator.runtime.own_lease import OwnLease
from tests.operator.annotated_work import api_of, refused


def word(renewed: str) -> bytes:
    return f'{{"spec":{{"holderIdentity":"first","renewTime":"{renewed}"}}}}'.encode()


def noting(text: str) -> bytes:
    spec = json.loads(word("2026-01-01T00:00:00Z"))["spec"]
    noted = {"metadata": {"annotations": {labels.SLOWEST_SPEEDS: text}}, "spec": spec}
    return json.dumps(noted).encode()


def listening(clock: ManualClock, *listed: bytes) -> LeaseHeartbeat:
    """Return a listener whose first list is done."""
    pulse = LeaseHeartbeat(clock.monotonic)
    hear_list(pulse, *listed)
    return pulse


def hear_list(pulse: LeaseHeartbeat, *listed: bytes) -> None:
    pulse.list_began()
    for each in listed:
        pulse.upsert(decode_lease(each))
    pulse.list_ended()


@pytest.mark.parametrize(
    ("passed_s", "is_heard"),
    [
        pytest.param(HEARD_WITHIN_S - 0.1, True, id="to-the-last-moment"),
        pytest.param(HEARD_WITHIN_S, False, id="silent-for-a-minute"),
    ],
)
def test_a_word_counts_for_a_minute_of_our_own_clock(passed_s: float, is_heard: bool) -> None:
    clock = ManualClock()
    pulse = listening(clock, word("2026-01-01T00:00:00Z"))
    pulse.upsert(decode_lease(word("1999-01-01T00:00:00Z")))  # a clock that was set back
    clock.advance(passed_s)
    assert pulse.is_heard is is_heard


def test_a_lease_that_was_there_before_may_be_a_dead_ones() -> None:
    pulse = listening(ManualClock(), word("2099-01-01T00:00:00Z"))
    assert not pulse.is_heard
    hear_list(pulse, word("2099-01-01T00:00:00Z"))
    assert not pulse.is_heard, "the same word again"


def test_a_lease_that_is_made_while_we_listen_is_a_sign_of_life() -> None:
    pulse = listening(ManualClock())
    pulse.upsert(decode_lease(word("2026-01-01T00:00:00Z")))
    assert pulse.is_heard


@pytest.mark.parametrize(
    ("gap_s", "is_heard"),
    [
        pytest.param(HEARD_WITHIN_S - 0.1, True, id="it-is-less-than-a-minute-old"),
        pytest.param(HEARD_WITHIN_S, False, id="its-process-may-have-died-a-minute-ago"),
    ],
)
def test_a_word_that_a_list_finds_is_as_old_as_our_last_look(gap_s: float, is_heard: bool) -> None:
    clock = ManualClock()
    pulse = listening(clock, word("2026-01-01T00:00:00Z"))
    clock.advance(gap_s)
    hear_list(pulse, word("2026-01-01T00:00:05Z"))
    assert pulse.is_heard is is_heard
    pulse.upsert(decode_lease(word("2026-01-01T00:00:10Z")))
    assert pulse.is_heard, "a change while we watch is fresh"


@pytest.mark.parametrize("end", ["deleted", "not-listed"])
def test_without_the_lease_nobody_is_heard(end: str) -> None:
    pulse = listening(ManualClock())
    pulse.upsert(decode_lease(word("2026-01-01T00:00:00Z")))
    if end == "deleted":
        pulse.remove(decode_lease(word("2026-01-01T00:00:00Z")))
    else:
        hear_list(pulse)
    assert not pulse.is_heard


def test_who_lives_is_heard_before_we_have_done_listening() -> None:
    clock = ManualClock()
    pulse = LeaseHeartbeat(clock.monotonic)
    clock.advance(LISTENS_S)
    assert not pulse.has_listened, "it has not begun"
    hear_list(pulse)
    clock.advance(LISTENS_S - 0.1)
    assert not pulse.has_listened
    clock.advance(0.1)
    assert pulse.has_listened


def test_who_listens_learns_how_slow_the_slowest_node_is() -> None:
    pulse = listening(ManualClock(), word("2026-01-01T00:00:00Z"))
    assert pulse.slowest_speed(0.0) == 1.0, "before the first note"
    written = speed_note(lambda gpus: 0.5 if gpus else 0.25)[labels.SLOWEST_SPEEDS]
    pulse.upsert(decode_lease(noting(written)))
    assert (pulse.slowest_speed(0.0), pulse.slowest_speed(8.0)) == (0.25, 0.5)
    assert pulse.is_heard is False, "a note alone is no sign of life"
    hear_list(pulse)
    assert pulse.slowest_speed(0.0) == 1.0, "the Lease is gone"


@pytest.mark.parametrize("text", ["", "slow", "[1]", "[0, 1]", "[1, -1]", "[1, 1e999]"])
def test_speeds_that_no_leader_has_written_count_as_none(text: str) -> None:
    pulse = listening(ManualClock(), noting(text))
    assert (pulse.slowest_speed(0.0), pulse.slowest_speed(1.0)) == (1.0, 1.0)


async def test_a_word_carries_the_leaders_notes_and_leaves_those_of_others() -> None:
    bodies = list[bytes]()

    def answer(request: httpx.Request) -> httpx.Response:
        bodies.append(request.content)
        return httpx.Response(200, content=b"{}")

    async with api_of(answer) as client:
        lease = OwnLease(client, "own", "heartbeat", "first")
        await Heartbeat(lease, lambda: True, lambda: speed_note(lambda _: 0.5)).beat()
        await Heartbeat(lease, lambda: True).beat()
    leader, releaser = (json.loads(body)["metadata"] for body in bodies)
    assert leader["annotations"] == {labels.SLOWEST_SPEEDS: "[0.5, 0.5]"}
    assert labels.SLOWEST_SPEEDS not in releaser["annotations"], "a merge patch keeps the others"


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 2 * HEARD_WITHIN_S)), max_size=9))
def test_nobody_is_heard_whose_word_has_not_changed_for_a_minute(
    words: list[tuple[str, float]],
) -> None:
    clock = ManualClock()
    pulse = listening(clock, word("a"))
    last, changed_at = "a", float("-inf")
    for text, passed_s in words:
        clock.advance(passed_s)
        if text != last:
            last, changed_at = text, clock.monotonic()
        pulse.upsert(decode_lease(word(text)))
        assert pulse.is_heard is (clock.monotonic() - changed_at < HEARD_WITHIN_S)


async def test_a_sign_that_was_taken_shows_for_as_long_as_it_counts() -> None:
    clock = ManualClock()
    answers = [refused(403), httpx.Response(200, content=b"{}")]
    async with api_of(lambda _: answers.pop(0)) as client:
        lease = OwnLease(client, "own", "heartbeat", "first")
        beating = Heartbeat(lease, lambda: True, monotonic=clock.monotonic)
        with pytest.raises(ApiUnavailable):
            await beating.beat()
        assert not beating.is_given, "it was refused"
        await beating.beat()
    assert beating.is_given
    clock.advance(HEARD_WITHIN_S - 0.1)
    assert beating.is_given
    clock.advance(0.1)
    assert not beating.is_given


async def test_rights_that_are_there_are_asked_for_every_two_minutes_and_missed_ones_soon() -> None:
    clock, asked = ManualClock(), list[bool]()
    has_right = True

    def answer(_: httpx.Request) -> httpx.Response:
        asked.append(has_right)
        return httpx.Response(201, json={"status": {"allowed": has_right}})

    async with api_of(answer) as client:
        right = RightToStart(client, clock.monotonic)
        assert await right.is_held()
        assert len(asked) == 2, "for Jobs and for pods"
        has_right = False
        clock.advance(2 * HEARD_WITHIN_S)
        assert await right.is_held()
        assert len(asked) == 2
        clock.advance(0.1)
        assert not await right.is_held()
        has_right = True
        clock.advance(BEATS_EVERY_S + 0.1)
        assert await right.is_held()
        assert len(asked) == 6
