import dataclasses
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_core.errors import BadInput
from greensched_core.ledger_records import (
    Amounts,
    ForecastUsed,
    InputAge,
    LedgerLine,
    LedgerRecord,
    Loss,
    LossReason,
    Subject,
    What,
    decode_line,
    encode_line,
    flat,
    from_flat,
)

# Without what neither UTF-8 nor PostgreSQL holds; those have a test of their own.
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
numbers = st.floats(allow_nan=False, allow_infinity=False)
amounts = st.builds(Amounts, *[st.none() | numbers] * 3)
subjects = st.builds(
    Subject, kind=texts, namespace=texts, name=texts, uid=st.none() | texts,
    owner=st.none() | texts, cpu_cores=st.none() | numbers, memory_bytes=st.none() | numbers,
    gpus=st.none() | numbers,
)  # fmt: skip
optional_texts = ("occurrence", "policy", "mode", "reason", "zone", "currency", "node", "decision")
optional_numbers = (
    "planned_start", "latest_start", "deadline", "run_now_start", "expected_runtime_s",
    "measured_runtime_s",
)  # fmt: skip
records = st.builds(
    LedgerRecord, what=st.sampled_from(What), at=numbers, subject=subjects,
    is_shadow=st.booleans(),
    input_ages=st.lists(st.builds(InputAge, texts, numbers), max_size=3).map(tuple),
    forecast=st.none() | st.builds(ForecastUsed, texts, numbers, texts),
    planned=amounts, run_now=amounts, measured=amounts,
    **{name: st.none() | texts for name in optional_texts},
    **{name: st.none() | numbers for name in optional_numbers},
)  # fmt: skip
HELD = LedgerRecord(
    what=What.HELD, at=10.0, subject=Subject(kind="Job", namespace="ml", name="train", uid="u1")
)


@given(records)
def test_a_record_comes_back_from_a_line_as_it_was(record: LedgerRecord) -> None:
    assert decode_line(encode_line(LedgerLine(record=record))).record == record


@given(records)
def test_a_record_comes_back_from_a_tables_row_as_it_was(record: LedgerRecord) -> None:
    assert from_flat(flat(record)) == record


def test_a_loss_comes_back_from_a_line_as_it_was() -> None:
    loss = Loss("l1", LossReason.CORRUPT, 1.0, 2.0, None)
    assert decode_line(encode_line(LedgerLine(loss=loss))) == LedgerLine(loss=loss)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_no_data(value: float) -> None:
    row = flat(dataclasses.replace(HELD, deadline=value, planned=Amounts(energy_j=value)))
    assert (row["deadline"], row["planned_energy_j"]) == (None, None)


@pytest.mark.parametrize("text", ["a\0b", "a\ud800b"])
def test_text_that_no_database_takes_is_replaced(text: str) -> None:
    told = flat(dataclasses.replace(HELD, reason=text))["reason"]
    assert told[0] + told[-1] == "ab" and len(told.encode()) >= 3 and "\0" not in told


@pytest.mark.parametrize(("change", "is_same"), [
    pytest.param({"at": 11.0, "reason": "else"}, True, id="told-again-later"),
    pytest.param({"measured": Amounts(1.0, 2.0, 3.0)}, True, id="completed"),
    pytest.param({"is_shadow": True}, False, id="shadow"),
    pytest.param({"what": What.RELEASED}, False, id="another-decision"),
    pytest.param({"occurrence": "2"}, False, id="a-second-time"),
    pytest.param({"subject": dataclasses.replace(HELD.subject, uid="u2")}, False, id="another-uid"),
])  # fmt: skip
def test_the_same_decision_has_the_same_id(change: dict[str, Any], is_same: bool) -> None:
    assert (dataclasses.replace(HELD, **change).id == HELD.id) == is_same


@pytest.mark.parametrize(("what", "first", "second", "is_same"), [
    pytest.param(What.PLANNED, {"planned_start": 5.0}, {"planned_start": 5.4}, True, id="plan"),
    pytest.param(What.PLANNED, {"planned_start": 5.0}, {"planned_start": 9.0}, False, id="replan"),
    pytest.param(What.PAUSED, {"at": 5.0}, {"at": 5.4}, True, id="pause"),
    pytest.param(What.PAUSED, {"at": 5.0}, {"at": 9.0}, False, id="second-pause"),
])  # fmt: skip
def test_what_may_come_several_times_is_distinguished(
    what: What, first: dict[str, Any], second: dict[str, Any], is_same: bool
) -> None:
    one, other = (dataclasses.replace(HELD, what=what, **each) for each in (first, second))
    assert (one.id == other.id) == is_same


def test_without_a_uid_a_name_that_is_used_again_is_another_workload() -> None:
    nameless = dataclasses.replace(HELD, subject=dataclasses.replace(HELD.subject, uid=None))
    assert dataclasses.replace(nameless, at=10.2).id == nameless.id
    assert dataclasses.replace(nameless, at=900.0).id != nameless.id


@pytest.mark.parametrize("text", [
    b"", b"[]", b"{", b'{"record":{}}', b'{"record":{"what":"eaten","at":1}}', b"\xff", b"[" * 5000,
])  # fmt: skip
def test_what_is_no_line_of_a_ledger_is_reported(text: bytes) -> None:
    with pytest.raises(BadInput, match="not a line of a ledger"):
        decode_line(text)


@pytest.mark.parametrize("change", [
    {"what": "eaten"}, {"what": None}, {"input_ages": "{"}, {"input_ages": "[1]"},
])  # fmt: skip
def test_a_row_that_is_no_record_is_reported(change: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="not a record of a ledger"):
        from_flat({**flat(HELD), **change})
