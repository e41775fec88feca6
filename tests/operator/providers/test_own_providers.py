"""What users bring themselves: JSON endpoints, CSV and Parquet files, the static table."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pytest

from docs.provider_schema import grid_signal_spec
from greensched_core.errors import BadInput
from greensched_core.signals.static import load_static_zones, parse_static_zones
from greensched_core.signals.steps import SignalKind
from greensched_core.signals.timestamps import parse_timestamp
from greensched_operator.providers import file, json_endpoint, static
from greensched_operator.providers.answers import (
    Answer,
    FaultReason,
    ProviderFault,
    Reply,
)
from greensched_operator.providers.catalogue import NAMES, PROVIDERS, parse_provider
from greensched_operator.providers.file import File
from greensched_operator.providers.json_endpoint import JsonEndpoint
from greensched_operator.providers.secret_keys import TokenRef
from greensched_operator.providers.static import Static
from tests.operator.providers.fixture_types import Golden, Talk

URL = "https://example.test/x"
LISTS = JsonEndpoint(URL, "unix_seconds", "price", currency="EUR")
SLOTS = JsonEndpoint(URL, "timestamp", "value", slots="0.forecastData", observed_at="0.generatedAt")


def test_lists_of_equal_length_are_read(golden: Golden, now: float) -> None:
    answer = json_endpoint.read(golden("energy-charts-price.json"), LISTS, "price")
    slot = answer.at(now)
    assert slot is not None
    assert (slot.value, slot.start) == (85.0, now - 600)
    assert [slot.value for slot in answer.slots[:4]] == [88.1, 87.5, -0.01, None]
    assert answer.unit == "EUR/MWh"


def test_slots_at_a_path_are_read_and_minus_one_is_no_intensity(golden: Golden) -> None:
    answer = json_endpoint.read(golden("carbon-aware-sdk-forecast.json"), SLOTS, "carbon")
    assert [slot.value for slot in answer.slots[:4]] == [301.5, 299.0, None, 288.2]
    assert answer.slots[1].start - answer.slots[0].start == 300
    assert answer.observed_at == parse_timestamp("2026-01-19T12:00:00Z")


def test_the_secret_is_the_whole_value_of_its_header(golden: Golden, talk: Talk) -> None:
    asks = JsonEndpoint(
        URL, "unix_seconds", "price", header="X-Key", secret_ref=TokenRef("mine", "k")
    )
    _, (asked,) = talk(asks.ask_for("price", ("s3cret",)), golden("energy-charts-price.json"))
    assert asked.headers == (("X-Key", "s3cret"),)
    assert "s3cret" not in repr(asked)


@pytest.mark.parametrize(
    ("body", "endpoint", "values", "end"),
    [
        pytest.param(
            b'[{"s":"1970-01-01T00:00:00Z","e":"1970-01-01T00:10:00Z","v":2}]',
            JsonEndpoint(URL, "s", "v", slots="", end="e"), [2.0], 600.0, id="ends-are-said",
        ),
        pytest.param(
            b'{"a":[{"s":0,"v":2},{"s":60,"v":1}]}',
            JsonEndpoint(URL, "s", "v", slots="a", multiply=1000.0), [2000.0, 1000.0], 120.0,
            id="multiplied",
        ),
        pytest.param(
            b'{"a":[{"s":1768824000000,"v":2}]}',
            JsonEndpoint(URL, "s", "v", slots="a", slot_seconds=900), [2.0], 1768824900.0,
            id="milliseconds",
        ),
        pytest.param(
            b'{"a":[{"s":0},{"s":60,"v":1}]}',
            JsonEndpoint(URL, "s", "v", slots="a"), [None, 1.0], 120.0, id="a-value-is-missing",
        ),
        pytest.param(
            b'{"s":["1970-01-01T00:00Z"],"v":[7]}',
            JsonEndpoint(URL, "s", "v"), [7.0], 3600.0, id="a-lone-slot-is-an-hour",
        ),
    ],
)  # fmt: skip
def test_an_endpoint_is_read_as_its_paths_say(
    body: bytes, endpoint: JsonEndpoint, values: list[float | None], end: float
) -> None:
    answer = json_endpoint.read(body, endpoint, "carbon")
    assert ([slot.value for slot in answer.slots], answer.end) == (values, end)


@pytest.mark.parametrize(
    ("body", "endpoint", "words"),
    [
        pytest.param(b"{}", LISTS, "'unix_seconds'", id="path-leads-nowhere"),
        pytest.param(b'{"unix_seconds":[1],"price":[]}', LISTS, "length", id="lengths-differ"),
        pytest.param(b'{"unix_seconds":[1],"price":["secret"]}', LISTS, "number", id="text"),
        pytest.param(b'{"unix_seconds":[null],"price":[1]}', LISTS, "null", id="null-start"),
        pytest.param(b'{"unix_seconds":["now"],"price":[1]}', LISTS, "time", id="no-time"),
        pytest.param(b"[]", SLOTS, "forecastData", id="index-out-of-range"),
        pytest.param(b"secret", LISTS, "not JSON", id="no-json"),
    ],
)
def test_a_wrong_path_is_reported_without_a_word_of_the_answer(
    body: bytes, endpoint: JsonEndpoint, words: str
) -> None:
    with pytest.raises(ProviderFault, match=words) as fault:
        json_endpoint.read(body, endpoint, "price")
    assert fault.value.reason is FaultReason.GARBAGE
    assert "secret" not in str(fault.value)


def test_what_a_refusal_says_is_not_reported(talk: Talk) -> None:
    refusal = Reply(403, b'{"message": "internal-host: secret"}')
    with pytest.raises(ProviderFault, match="^HTTP 403$") as fault:
        talk(LISTS.ask_for("price", ()), refusal)
    assert fault.value.reason is FaultReason.UNAUTHORISED


CSV = """start,grams
2026-01-19T12:00:00Z,300
2026-01-19 13:00:00,
2026-01-19T15:00:00+01:00,310
2027-01-19T12:00:00Z,1
"""


def values(answer: Answer) -> list[float | None]:
    return [slot.value for slot in answer.slots]


def test_a_csv_file_is_read_around_now(tmp_path: Path, now: float) -> None:
    (tmp_path / "de.csv").write_text(CSV)
    answer = file.read(File("de.csv", "grams"), tmp_path, "carbon", now)
    assert values(answer) == [300.0, None, 310.0]
    assert answer.slots[0].start == parse_timestamp("2026-01-19T12:00:00Z")
    assert answer.end == parse_timestamp("2026-01-19T15:00:00Z")


@pytest.mark.parametrize("kind", ["TIMESTAMP", "TIMESTAMPTZ"])
def test_a_parquet_file_is_read(tmp_path: Path, now: float, kind: str) -> None:
    rows = f"({kind} '2026-01-19 12:00:00', -3), ({kind} '2026-01-19 12:15:00', 8)"
    duckdb.sql(f"""COPY (SELECT * FROM (VALUES {rows}) AS t("at", "per kWh"))
                   TO '{tmp_path}/p.parquet'""")
    wanted = File("p.parquet", "per kWh", "at", multiply=1000.0, currency="GBP")
    answer = file.read(wanted, tmp_path, "price", now)
    assert values(answer) == [-3000.0, 8000.0]
    assert answer.unit == "GBP/MWh"


def test_epoch_seconds_are_starts_too(tmp_path: Path, now: float) -> None:
    (tmp_path / "de.csv").write_text(f"start,v\n{now - 600},5\n{now + 300},6\n")
    answer = file.read(File("de.csv", "v", slot_seconds=600), tmp_path, "price", now)
    assert values(answer) == [5.0, None, 6.0]


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        pytest.param(File("no.csv", "v"), FaultReason.UNREACHABLE, id="absent"),
        pytest.param(File("../secret.csv", "v"), FaultReason.UNREACHABLE, id="out-of-the-folder"),
        pytest.param(File("link.csv", "v"), FaultReason.UNREACHABLE, id="a-link-out-of-the-folder"),
        pytest.param(File("old.csv", "v"), FaultReason.NO_DATA, id="nothing-around-now"),
        pytest.param(File("old.csv", "w"), FaultReason.GARBAGE, id="no-such-column"),
        pytest.param(
            File("old.csv", 'v" FROM x; --'), FaultReason.GARBAGE, id="a-column-of-quotes"
        ),
        pytest.param(File("junk.parquet", "v"), FaultReason.GARBAGE, id="no-parquet"),
        pytest.param(File("junk.txt", "v"), FaultReason.GARBAGE, id="another-suffix"),
    ],
)
def test_a_file_that_gives_nothing_says_why(
    tmp_path: Path, now: float, wanted: File, reason: FaultReason
) -> None:
    folder = tmp_path / "signals"
    folder.mkdir()
    (tmp_path / "secret.csv").write_text(f"start,v\n{now},1\n")
    (folder / "link.csv").symlink_to(tmp_path / "secret.csv")
    (folder / "old.csv").write_text("start,v\n2020-01-01T00:00:00Z,1\n")
    (folder / "junk.parquet").write_bytes(b"\0junk")
    (folder / "junk.txt").write_text("junk")
    with pytest.raises(ProviderFault) as fault:
        file.read(wanted, folder, "carbon", now)
    assert fault.value.reason is reason


def test_without_a_folder_no_file_is_read(now: float) -> None:
    with pytest.raises(ProviderFault, match="no folder"):
        file.read(File("a.csv", "v"), None, "carbon", now)


@pytest.mark.parametrize(
    ("zone", "kind", "value", "unit"),
    [
        pytest.param("AT", "price", 81.5, "EUR/MWh", id="price-of-the-zone"),
        pytest.param("XX", "carbon", 481.0, "g/kWh", id="carbon-of-the-world"),
    ],
)
def test_the_static_table_gives_the_zone_or_the_world(
    now: float, zone: str, kind: SignalKind, value: float, unit: str
) -> None:
    answer = static.read(Static(), zone, load_static_zones(), kind, now)
    assert (values(answer), answer.unit, answer.is_estimated) == ([value], unit, True)


def test_the_static_table_of_another_zone_can_be_named(now: float) -> None:
    text = "[default]\nprice_per_mwh = 9\n[zones.SE]\ncarbon_grams_per_kwh = 41"
    table = parse_static_zones(text, "a test")
    assert values(static.read(Static("SE"), "DE", table, "carbon", now)) == [41.0]
    with pytest.raises(ProviderFault) as fault:
        static.read(Static(), "DE", table, "carbon", now)
    assert fault.value.reason is FaultReason.UNKNOWN_ZONE


@pytest.mark.parametrize(
    ("raw", "kind", "words"),
    [
        pytest.param({}, "carbon", "exactly one", id="none"),
        pytest.param({"static": {}, "file": {}}, "price", "exactly one", id="two"),
        pytest.param({"entsoe": {}}, "carbon", "found entsoe", id="a-price-for-carbon"),
        pytest.param({"wattTime": {}}, "price", "found wattTime", id="carbon-for-a-price"),
        pytest.param({"electricityMaps": {"zone": "DE"}}, "carbon", "secretRef", id="no-secret"),
        pytest.param({"nordPool": {"area": 3}}, "price", "area", id="area-is-a-number"),
    ],
)
def test_an_entry_that_the_api_server_should_have_refused_is_reported(
    raw: dict[str, Any], kind: SignalKind, words: str
) -> None:
    with pytest.raises(BadInput, match=words):
        parse_provider(raw, kind)


def test_every_provider_serves_a_signal() -> None:
    assert {name for named in PROVIDERS.values() for name in named} == {*NAMES}


def boundless(schema: Mapping[str, Any], name: str) -> Iterator[str]:
    """Yield the names of the texts and lists in a schema that may have any length."""
    longest = {"string": {"maxLength", "enum"}, "array": {"maxItems"}}.get(schema["type"])
    if longest is not None and not longest & schema.keys():
        yield name
    below = dict(schema.get("properties", {})) | (
        {"[]": schema["items"]} if "items" in schema else {}
    )
    for field, each in below.items():
        yield from boundless(each, f"{name}.{field}")


@pytest.mark.parametrize("kind", PROVIDERS)
def test_every_text_and_list_of_a_provider_has_a_longest(kind: SignalKind) -> None:
    """The API server refuses rules whose cost it cannot bound."""
    listed = (grid_signal_spec().kind.below or {})[kind].kind
    assert listed.each is not None
    assert list(boundless(listed.each.schema, kind)) == []
