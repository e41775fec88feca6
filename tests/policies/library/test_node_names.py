import json
import re

import msgspec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from greensched_policies.library.node_names import HEAD, NO_ROW, TAIL, ByteArray, EntryTable

NAMES = st.from_regex(re.compile(r"[a-z0-9]([a-z0-9.-]{0,20}[a-z0-9])?", re.ASCII), fullmatch=True)
ANY_NAME = st.text(st.characters(codec="utf-8"), min_size=1)
KNOWN = [f"node-{number}.example" for number in range(3_000)]


def entries_of(names: list[str]) -> ByteArray:
    heads = [HEAD + msgspec.json.encode(name) + b',"Score":' for name in names]
    width = max((len(head) for head in heads), default=0) + len(TAIL)
    whole = b"".join(head.ljust(width - len(TAIL)) + TAIL for head in heads)
    return np.frombuffer(whole, np.uint8).reshape(len(names), -1 if names else width)


def table_of(names: list[str]) -> EntryTable:
    return EntryTable(entries_of(names), range(len(names)))


TABLE = table_of(KNOWN)


def compact(names: list[str]) -> bytes:
    return json.dumps(names, separators=(",", ":"), ensure_ascii=False).encode()


def found(table: EntryTable, text: bytes) -> tuple[list[int], int] | None:
    rows = table.rows(bytearray(text))
    return None if rows is None else (rows[0].tolist(), rows[1])


@given(st.sets(NAMES, max_size=60), st.lists(NAMES), st.randoms(use_true_random=False))
def test_every_name_gets_the_row_that_a_dict_gives_it(
    names: set[str], others: list[str], random: object
) -> None:
    known = sorted(names)
    offered = known + others
    random.shuffle(offered)  # type: ignore[attr-defined] # hypothesis types it as object
    row_of = {name: row for row, name in enumerate(known)}
    rows = [row_of.get(name, NO_ROW) for name in offered]
    assert found(table_of(known), compact(offered)) == (rows, rows.count(NO_ROW))


def test_only_the_rows_that_are_named_are_found() -> None:
    table = EntryTable(entries_of(["a", "b", "c"]), [2, 0])
    assert found(table, b'["a","b","c"]') == ([0, NO_ROW, 2], 1)


def test_thousands_of_names_in_any_order_are_found() -> None:
    order = [*range(1_700, 3_000), *range(1_700)]
    assert found(TABLE, compact([KNOWN[row] for row in order])) == (order, 0)


def test_names_that_begin_alike_are_distinguished() -> None:
    known = ["x" * 64, "x" * 65, "x" * 64 + "y" * 100, "ab"]
    offered = ["x" * 66, *known, "x" * 63, "a", "abc", ""]
    rows = [NO_ROW, 0, 1, 2, 3, NO_ROW, NO_ROW, NO_ROW, NO_ROW]
    assert found(table_of(known), compact(offered)) == (rows, 5)


@pytest.mark.parametrize("length", range(1, 26))
def test_names_that_differ_in_any_one_byte_are_distinguished(length: int) -> None:
    known = [("a" * place + "b").ljust(length, "a") for place in range(length)]
    offered = ["a" * length, *known, known[-1] + "a", known[-1][:-1]]
    rows = [NO_ROW, *range(length), NO_ROW, NO_ROW]
    assert found(table_of(known), compact(offered)) == (rows, 3)


@given(st.lists(ANY_NAME, max_size=5, unique=True))
@example(['node-1","node-2', "node-1"])
@example(["\x7f", "\\"])
@example(["12345678\x7f", "ab"])
@example(["1234567890\u00e9"])
def test_names_that_are_no_kubernetes_names_are_found_as_plain_text_or_not_at_all(
    names: list[str],
) -> None:
    rows = found(table_of(names), compact(names))
    assert rows in (None, (list(range(len(names))), 0))


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(KNOWN[:9]),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
), st.sampled_from([(",", ":"), (", ", ": ")]))  # fmt: skip
def test_json_that_is_no_compact_array_of_names_is_left_to_the_decoder(
    value: object, separators: tuple[str, str]
) -> None:
    rows = found(TABLE, json.dumps(value, separators=separators).encode())
    if rows is not None:
        assert isinstance(value, list)
        assert all(isinstance(name, str) for name in value)
        place_of = {name: row for row, name in enumerate(KNOWN)}
        assert rows[0] == [place_of.get(name, NO_ROW) for name in value]


@given(st.binary(max_size=40) | st.text('[]",a').map(str.encode))
@example(b"")
@example(b"[")
@example(b'["a')
@example(b'["a"')
@example(b'["a",]')
@example(b'["a""b"]')
@example(b'["a","b')
@example(b'[,"a"]')
def test_bytes_that_are_no_array_are_never_read_as_one(text: bytes) -> None:
    rows = found(TABLE, text)
    if rows is not None:
        assert len(json.loads(text)) == len(rows[0])


def test_an_empty_cluster_knows_nobody() -> None:
    table = EntryTable(np.zeros((256, 64), np.uint8), [])
    assert found(table, b'["a"]') == ([NO_ROW], 1)
    assert found(table, b"[]") == ([], 0)
    without_entries = EntryTable(np.empty((0, 64), np.uint8), [])
    assert found(without_entries, b'["a","b"]') == ([NO_ROW, NO_ROW], 2)


def test_rows_that_the_entries_do_not_have_are_refused() -> None:
    with pytest.raises(IndexError, match="rows 0 to 3 of 3 entries"):
        EntryTable(entries_of(["a", "b", "c"]), [0, 3])
    table = table_of(["a", "b", "c"])
    with pytest.raises(IndexError, match="rows -1 to 2 of 3 entries"):
        table.written(np.array([-1, 2]), np.zeros(2, np.int8))


@given(st.lists(st.tuples(st.sampled_from(range(9)), st.integers(0, 10))))
def test_each_entry_is_written_with_its_score(given: list[tuple[int, int]]) -> None:
    rows, scores = (np.array([pair[place] for pair in given], np.int64) for place in (0, 1))
    written = TABLE.written(rows, scores.astype(np.int8))
    assert json.loads(written) == [{"Host": KNOWN[row], "Score": score} for row, score in given]
