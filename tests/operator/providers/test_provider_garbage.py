"""Whatever comes over a wire: an answer that can be used, or a fault; never anything else."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_operator.providers import (
    caiso_oasis,
    electricity_maps,
    entsoe,
    json_endpoint,
    nord_pool,
    uk_carbon_intensity,
    watttime,
)
from greensched_operator.providers.answers import Answer, ProviderFault, Reply
from greensched_operator.providers.json_endpoint import JsonEndpoint

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "providers"
NOW = 1_768_824_600.0
LISTS = JsonEndpoint("https://example.test", "unix_seconds", "price")
SLOTS = JsonEndpoint("https://example.test", "timestamp", "value", slots="0.forecastData")

Read = Callable[[bytes], Answer]
READERS: dict[str, Read] = {
    "electricity-maps-latest.json": lambda body: electricity_maps.read(body, None, "DE"),
    "electricity-maps-forecast.json": lambda body: electricity_maps.read(None, body, "DE"),
    "watttime-forecast.json": lambda body: watttime.read(body, "CAISO_NORTH"),
    "uk-national.json": lambda body: uk_carbon_intensity.read(body, NOW),
    "uk-regional.json": lambda body: uk_carbon_intensity.read(body, NOW),
    "entsoe-prices.xml": lambda body: entsoe.read(Reply(200, body)),
    "nord-pool-today.json": lambda body: nord_pool.read([body], "SE3"),
    "energy-charts-price.json": lambda body: json_endpoint.read(body, LISTS, "price"),
    "carbon-aware-sdk-forecast.json": lambda body: json_endpoint.read(body, SLOTS, "carbon"),
}
JSON_READERS = [name for name in READERS if name.endswith(".json")]
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
    | st.sampled_from(["2026-01-19T12:00:00Z", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z"])
)  # fmt: skip
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)


def usable_or_fault(read: Read, body: bytes) -> None:
    """Fail unless the body gives an answer that holds its promises, or a ProviderFault."""
    try:
        answer = read(body)
    except ProviderFault as fault:
        assert str(fault)
        assert len(str(fault)) < 500
        return
    starts = [slot.start for slot in answer.slots]
    known = [slot.value for slot in answer.slots if slot.value is not None]
    assert starts == sorted(set(starts))
    assert starts[-1] < answer.end < math.inf
    assert known
    assert all(math.isfinite(value) for value in known)
    if answer.unit == "g/kWh":
        assert all(0 <= value <= 10_000 for value in known)
        assert any(known), "zeros alone are no data"


@pytest.mark.parametrize("name", READERS)
@given(body=st.binary(max_size=300))
def test_bytes_at_random_never_surprise(name: str, body: bytes) -> None:
    usable_or_fault(READERS[name], body)


@given(body=st.binary(max_size=300))
def test_a_damaged_zip_never_surprises(body: bytes) -> None:
    usable_or_fault(lambda raw: caiso_oasis.read(raw, "N"), b"PK\x03\x04" + body)


@pytest.mark.parametrize("name", READERS)
@given(cut=st.integers(0, 5_000), put=st.binary(max_size=4))
def test_a_cut_or_bent_answer_never_surprises(name: str, cut: int, put: bytes) -> None:
    whole = (GOLDEN / name).read_bytes()
    place = cut % len(whole)
    usable_or_fault(READERS[name], whole[:place])
    usable_or_fault(READERS[name], whole[:place] + put + whole[place + len(put) :])


@pytest.mark.parametrize("name", JSON_READERS)
@given(data=st.data())
def test_a_value_of_another_kind_anywhere_never_surprises(name: str, data: st.DataObject) -> None:
    whole: Any = json.loads((GOLDEN / name).read_bytes())
    place: Any = whole
    holder: Any = None
    key: Any = None
    while isinstance(place, dict | list) and place and (holder is None or data.draw(st.booleans())):
        holder = place
        key = data.draw(st.sampled_from(
            sorted(place) if isinstance(place, dict) else range(len(place))
        ))  # fmt: skip
        place = place[key]
    assert holder is not None
    holder[key] = data.draw(ANYTHING)
    usable_or_fault(READERS[name], json.dumps(whole).encode())
