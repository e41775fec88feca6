import json
import re

from hypothesis import given
from hypothesis import strategies as st

from greensched_extender.name_hashes import NameHashes
from greensched_extender.rows import NO_ROW

NAMES = st.from_regex(re.compile(r"[a-z0-9]([a-z0-9.-]{0,20}[a-z0-9])?", re.ASCII), fullmatch=True)
KNOWN = {f"node-{number}.example": number for number in range(3_000)}
HASHES = NameHashes(KNOWN, least_bytes=0)


def compact(names: list[str]) -> bytes:
    return json.dumps(names, separators=(",", ":"), ensure_ascii=False).encode()


@given(st.sets(NAMES, min_size=1, max_size=60), st.data())
def test_every_name_gets_the_row_that_the_dict_gives_it(
    names: set[str], data: st.DataObject
) -> None:
    row_of = {name: row for row, name in enumerate(sorted(names))}
    offered = data.draw(st.lists(st.sampled_from(sorted(names)) | NAMES, min_size=1))
    rows = NameHashes(row_of, least_bytes=0).rows(compact(offered))
    expected = [row_of.get(name, NO_ROW) for name in offered]
    assert rows is None or rows.tolist() == expected
    if NO_ROW not in expected:
        assert rows is not None


def test_thousands_of_names_in_any_order_are_found_without_decoding() -> None:
    names = [*list(KNOWN)[1_700:], *list(KNOWN)[:1_700]]
    rows = HASHES.rows(compact(names))
    assert rows is not None
    assert rows.tolist() == [KNOWN[name] for name in names]


def test_a_few_unknown_names_have_no_row_and_do_not_disturb_the_others() -> None:
    rows = HASHES.rows(compact(["node-7.example", "ghost", "node-9.example", ""]))
    assert rows is not None
    assert rows.tolist() == [7, NO_ROW, 9, NO_ROW]


def test_names_longer_than_the_table_holds_are_distinguished_all_the_same() -> None:
    row_of = {"x" * 64: 0, "x" * 65: 1, "x" * 64 + "y" * 100: 2, "ab": 3}
    names = ["x" * 66, *row_of, "x" * 63, "a", "abc"]
    rows = NameHashes(row_of, least_bytes=0).rows(compact(names))
    assert rows is not None
    assert rows.tolist() == [NO_ROW, 0, 1, 2, 3, NO_ROW, NO_ROW, NO_ROW]


def test_a_name_ends_where_its_quote_is_whatever_follows() -> None:
    row_of = {"node-1": 0, "node-10": 1, 'node-1","node-2': 2}
    rows = NameHashes(row_of, least_bytes=0).rows(compact(["node-1", "node-10", "node-1"]))
    assert rows is not None
    assert rows.tolist() == [0, 1, 0]


def test_bytes_that_are_no_text_are_left_to_the_decoder() -> None:
    assert HASHES.rows(b'["node-7.example","\xff\xfe"]') is None


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(sorted(KNOWN)[:9]),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
), st.sampled_from([(",", ":"), (", ", ": ")]))  # fmt: skip
def test_json_that_is_no_compact_array_of_names_is_left_to_the_decoder(
    value: object, separators: tuple[str, str]
) -> None:
    rows = HASHES.rows(json.dumps(value, separators=separators).encode())
    if rows is not None:
        assert isinstance(value, list)
        assert all(isinstance(name, str) for name in value)
        assert rows.tolist() == [KNOWN.get(name, NO_ROW) for name in value]


def test_a_very_large_array_is_left_to_the_decoder() -> None:
    assert HASHES.rows(compact(["x" * 60] * 20_000)) is None


def test_an_empty_cluster_knows_nobody() -> None:
    assert NameHashes({}, least_bytes=0).rows(b'["a"]') is None


def test_a_small_array_is_left_to_the_decoder() -> None:
    assert NameHashes(KNOWN).rows(compact(["node-7.example"])) is None
